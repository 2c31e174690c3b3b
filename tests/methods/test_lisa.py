import pytest
import torch
from torch import nn

from methods.shortcuts import PLAIN, misled, network, shortcut
from unspur.data.base import Split
from unspur.errors import UnspurError
from unspur.methods import lisa
from unspur.methods.erm import ERM
from unspur.methods.lisa import LISA
from unspur.train.recipe import SGD


def caught(monkeypatch, method, data):
    """What a method trains with."""
    found = {}
    monkeypatch.setattr(lisa, "train_model", lambda *args, **rest: found.update(rest))
    method.fit(network(), data)
    return found


@pytest.mark.parametrize(("p", "same", "other"), [(1.0, "y", "told"), (0.0, "told", "y")])
def test_partners_have_the_same_label_and_another_attribute_or_the_reverse(monkeypatch, p, same, other):
    data = shortcut()
    columns, pairs = {"y": data.y, "told": data.attributes["told"]}, []
    real = lisa.partners
    monkeypatch.setattr(lisa, "partners", lambda a, b: pairs.append(real(a, b)) or pairs[-1])
    objective = caught(monkeypatch, LISA(same_label=p), data)["objective"]
    batch = data.batch(torch.arange(80))  # 30 conflict, 50 do not
    objective(network(), batch, 0)
    a, b = columns[same][batch.index], columns[other][batch.index]
    assert bool((a[pairs[0]] == a).all()) and bool((b[pairs[0]] != b).all())


def test_which_of_the_two_is_drawn_for_each_batch_with_its_share(monkeypatch):
    data, calls = shortcut(), []
    monkeypatch.setattr(
        lisa, "partners", lambda a, b: calls.append(torch.equal(a, data.y[:80])) or torch.arange(len(a))
    )
    objective = caught(monkeypatch, LISA(same_label=0.25), data)["objective"]
    torch.manual_seed(0)
    model, batch = network(), data.batch(torch.arange(80))
    for step in range(200):
        objective(model, batch, step)
    assert sum(calls) / 200 == pytest.approx(0.25, abs=0.08)


def test_groups_are_drawn_alike_often(monkeypatch):
    shares = caught(monkeypatch, LISA(), shortcut())["order"].until.diff()
    assert shares.max() > 10 * shares.min()  # 15 of a conflicting group against 285


def test_conflicting_samples_are_classified_better_than_by_plain_training():
    plain, fit = ERM(erm=PLAIN).fit(network(), shortcut()), LISA(training=PLAIN).fit(network(), shortcut())
    assert misled(plain) < 0.1 and misled(fit) > misled(plain) + 0.3


@pytest.mark.parametrize(("mix", "greys"), [("paste", 2), ("blend", 1)])
def test_a_fit_trains_on_images_mixed_as_it_is_told(mix, greys):
    # every image is of one grey: with a box of its partner it has two, all of them of the data; a blend is of one
    grey = torch.arange(40) / 64
    y, told = torch.arange(40) % 2, torch.arange(40) // 2 % 2
    data = Split(grey.reshape(-1, 1, 1, 1).expand(40, 1, 8, 8).clone(), y, {"told": told})
    model, shown = nn.Sequential(nn.Flatten(), nn.Linear(64, 2)), []
    model.register_forward_pre_hook(lambda module, inputs: shown.append(inputs[0]) if module.training else None)
    LISA(training=SGD(lr=0.01, epochs=3, batch_size=20), mix=mix).fit(model, data)
    images = torch.cat(shown).flatten(1)
    assert max(len(image.unique()) for image in images) == greys
    assert bool(torch.isin(images, grey).all()) == (mix == "paste")


def test_settings_that_are_no_shares_are_refused():
    with pytest.raises(UnspurError, match=r"same_label must lie in \[0, 1\] but got 2"):
        LISA(same_label=2.0)
    with pytest.raises(UnspurError, match="Boxes can be pasted into images alone; use --set mix=blend"):
        LISA(mix="paste").fit(network(), shortcut())
