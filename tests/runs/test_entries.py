import re

import pytest

from unspur.data.sets.planted_mnist import BiasedMNIST
from unspur.errors import UnspurError
from unspur.runs.entries import enter

MINI = ["data.base=mini", "data.val=9000"]


def entered(methods, *settings, datasets=("biased_mnist",), **more):
    return enter(methods, datasets, [0, 1], settings=[*MINI, *settings], **more)


def test_plain_training_is_always_among_them_and_once():
    assert [entry.method for entry in entered(["jtt"])] == ["erm", "jtt"]
    assert [entry.method for entry in entered(["jtt", "erm", "jtt"])] == ["erm", "jtt"]


def test_a_setting_reaches_all_that_have_it_and_with_a_name_that_method_alone():
    plain, jtt, mixup = (
        entry.candidates[0][0].method
        for entry in entered(["jtt", "mixup"], "erm.epochs=7", "training.lr=0.5", "jtt:erm.epochs=2")
    )
    assert plain.erm.epochs == 7 and jtt.erm.epochs == 2
    assert jtt.training.lr == mixup.training.lr == 0.5


def test_mixed_precision_reaches_the_methods_that_can_mix():
    plain, afr = (entry.candidates[0][0] for entry in entered(["afr"], "precision=bf16"))
    assert plain.precision == "bf16" and afr.precision == "full"


def test_a_setting_of_data_reaches_the_sets_that_have_it():
    first, _, second, _ = entered(["jtt"], "data.squares=2", datasets=("biased_mnist", "colored_mnist"))
    assert first.candidates[0][0].data.squares == 2 and not hasattr(second.candidates[0][0].data, "squares")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("no_such=1", "No method or data set that is compared has the setting no_such=1"),
        ("data.squares=2", "No method or data set that is compared has the setting data.squares=2"),
        ("lisa:alpha=1", "The setting alpha=1 is of lisa, which is not compared"),
        ("jtt:data.val=50", "jtt:data.val=50 would give jtt other data or another network; leave out 'jtt:'"),
        ("erm.lr=fast", "erm.lr must be a number but got 'fast'"),
    ],
)
def test_a_setting_that_reaches_nothing_is_an_error(setting, sentence):
    with pytest.raises(UnspurError, match=sentence):
        entered(["jtt"], setting, datasets=("colored_mnist",))


@pytest.mark.parametrize(
    ("methods", "datasets", "sentence"),
    [
        (["ermm"], ["colored_mnist"], "Unknown method 'ermm'. Did you mean 'erm'?"),
        (["jtt"], ["colored_mnist", "colored_mnis"], "Unknown data set 'colored_mnis'. Did you mean 'colored_mnist'?"),
    ],
)
def test_a_mistyped_name_is_said_before_data_are_looked_at(methods, datasets, sentence, tmp_path):
    with pytest.raises(UnspurError, match=re.escape(sentence)):  # and not that MNIST is missing
        enter(methods, datasets, [0], data_dir=tmp_path)


def test_a_data_set_is_loaded_once_however_many_methods_there_are(monkeypatch):
    loaded, load = [], BiasedMNIST.load
    monkeypatch.setattr(BiasedMNIST, "load", lambda spec, files: loaded.append(spec) or load(spec, files))
    assert len(entered(["jtt", "mixup", "irm"])) == 4 and len(loaded) == 1


def test_candidates_are_all_recipes_rates_times_each_factor():
    _, jtt = entered(["jtt"], rates=[1.0, 10.0])
    slow, fast = (own[0].method for own in jtt.candidates)
    assert (fast.erm.lr, fast.training.lr) == pytest.approx((10 * slow.erm.lr, 10 * slow.training.lr))
    assert len(jtt.configs) == 4  # two candidates, two seeds
    _, heads = entered(["balanced_last_layer"], rates=[1.0, 10.0])
    assert len(heads.candidates) == 1  # which has a grid of rates of its own


def test_a_method_that_cannot_run_somewhere_is_left_out_with_the_reason():
    entries = enter(["w2d", "mixup"], ["parity"], [0])
    assert [(entry.method, bool(entry.left_out)) for entry in entries] == [
        ("erm", False),
        ("w2d", True),
        ("mixup", False),
    ]
    assert "no layer that is a map" in entries[1].left_out and entries[1].configs == []


def test_where_every_method_is_left_out_nothing_is_trained():
    with pytest.raises(UnspurError, match=r"nothing to compare with plain training: .* needs training data with group"):
        enter(["groupdro", "lisa"], ["mnist"], [0], settings=MINI)
    assert [entry.method for entry in enter(["erm"], ["mnist"], [0], settings=MINI)] == ["erm"]


def test_names_that_do_not_exist_and_rates_that_are_none_are_errors():
    with pytest.raises(UnspurError, match="Unknown method 'jt'"):
        entered(["jt"])
    with pytest.raises(UnspurError, match="Unknown data set 'biased_mnis'"):
        entered(["jtt"], datasets=("biased_mnis",))
    with pytest.raises(UnspurError, match="--rates must be numbers above 0"):
        entered(["jtt"], rates=[0.0])
    with pytest.raises(UnspurError, match="needs at least one data set; separate several by commas"):
        entered(["jtt"], datasets=())
    with pytest.raises(UnspurError, match="needs at least one seed"):
        enter(["jtt"], ["parity"], [])
