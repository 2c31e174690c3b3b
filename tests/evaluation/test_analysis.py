import json
import math

import pytest
import torch
from torch import nn

from unspur.core.files import write_tensors
from unspur.data.base import Dataset, Split
from unspur.data.files.fetch import DataFiles
from unspur.errors import UnspurError
from unspur.evaluation.analysis import _finite, _Look
from unspur.evaluation.figures import FIGURES, figures
from unspur.evaluation.scores import activations, chosen
from unspur.metrics.attribution import mean_shares
from unspur.metrics.compress import compressibility, prune
from unspur.metrics.represent import class_separation
from unspur.runs.analyze import FILE, MAPS_FILE, analyze, stored_analysis
from unspur.runs.config import configure
from unspur.runs.experiment import run
from unspur.runs.folder import Run
from unspur.saliency.attributions import integrated_gradients

TINY = ["arch.width=30", "erm.epochs=3", "erm.lr=0.1", "data.train=1000", "data.test=500", "data.val=0"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    out, config = tmp_path_factory.mktemp("runs"), configure("erm", "parity", "fcn", 0, TINY)
    run(config, out)
    return Run.create(out, config)


@pytest.fixture(scope="module")
def found(stored):
    return analyze(stored.folder)


def test_the_analysis_is_stored_with_the_run(stored, found):
    assert json.loads((stored.folder / FILE).read_text()) == json.loads(json.dumps(found))
    assert found["key"] == stored.config.key and found["test"] == "unbiased" and found["unknown"] == {}


def test_a_missing_figure_is_named_with_its_file(stored, found, tmp_path):
    broken = {**found, "norms": {"parameters": 1.0}}
    (tmp_path / FILE).write_text(json.dumps(broken))
    with pytest.raises(UnspurError, match=r"analysis\.json: norms\.logits is missing; restore or delete the file\."):
        stored_analysis(tmp_path)


def test_every_figure_is_there(found):
    assert set(figures(found)) == set(FIGURES) - {"background attribution"}  # bits are no pictures


def test_its_figures_are_those_of_the_metrics(stored, found):
    data = stored.config.data.load(DataFiles(None))
    model, test = stored.load_model(data), data.tests["unbiased"]  # 500 samples: fewer than are drawn
    z = activations(model, test)
    assert found["samples"] == 500
    assert found["activations"]["compressibility"] == pytest.approx(float(compressibility(z).mean()))
    assert found["class_separation"] == pytest.approx(class_separation(z, test.y, 2))

    def accuracy(network):
        with torch.no_grad():
            return float((network(test.x).argmax(1) == test.y).double().mean())

    curve = found["prunability"]["node"]
    assert curve["retained"][5] == pytest.approx(accuracy(prune(model, 0.5)) / accuracy(model))
    assert curve["mean"] == pytest.approx(sum(curve["retained"]) / 10)
    some = test.x[chosen(test, 200, stored.config.seed)]
    shares = mean_shares(integrated_gradients(model, some), stored.config.data.regions(torch.Size([20])))
    assert found["attribution"]["integrated_gradients"]["shares"] == pytest.approx(shares, abs=1e-4)
    assert sum(shares.values()) == pytest.approx(1)


def test_nodes_are_scored_on_the_test_set_and_columns_and_weights_on_the_samples(stored, found):
    data = stored.config.data.load(DataFiles(None))
    seen = _Look(stored.load_model(data), data, data.tests["unbiased"], samples=20, seed=0)
    curves = seen.compression()["prunability"]

    def accuracy(network):
        return float((network(seen.sample.x).argmax(1) == seen.sample.y).double().mean())

    assert curves["node"]["mean"] == found["prunability"]["node"]["mean"]
    for unit in ("column", "weight"):
        left = accuracy(prune(seen.model, 0.5, unit)) / accuracy(seen.model)
        assert curves[unit]["retained"][5] == pytest.approx(left)
        assert curves[unit]["mean"] != found["prunability"][unit]["mean"]


def test_the_largest_loss_ratio_is_that_of_all_epochs(stored, found):
    lines = [json.loads(line) for line in (stored.folder / "metrics.jsonl").read_text().splitlines()]
    assert found["training"]["max_loss_ratio"] == max(line["loss_ratio"] for line in lines)


def test_the_early_loss_ratio_is_the_mean_over_the_steps_of_five_epochs(stored, found):
    lines = [json.loads(line) for line in (stored.folder / "metrics.jsonl").read_text().splitlines()]
    steps = [ratio for line in lines[:5] for ratio in line["loss_ratios"] if ratio is not None]
    assert found["training"]["early_loss_ratio"] == pytest.approx(sum(steps) / len(steps))
    assert found["training"]["early_loss_ratio"] < found["training"]["max_loss_ratio"]


def test_prunability_by_the_worst_group_is_of_the_group_that_is_worst_at_each_share(stored, found):
    data = stored.config.data.load(DataFiles(None))
    model, test = stored.load_model(data), data.tests["unbiased"]

    def worst(network):
        right = (network(test.x).argmax(1) == test.y).double()
        groups = 2 * test.y + test.attributes["spurious"]
        return min(float(right[groups == group].mean()) for group in range(4))

    left = [worst(prune(model, kappa)) / worst(model) for kappa in (step / 10 for step in range(10))]
    assert found["prunability"]["node"]["worst_group"] == pytest.approx(sum(left) / 10)
    assert found["prunability"]["node"]["worst_group"] != found["prunability"]["node"]["mean"]


def test_maps_of_an_earlier_analysis_are_not_taken_for_its_own(stored):
    earlier = stored.folder / MAPS_FILE
    write_tensors(earlier, {"index": torch.zeros(1)})
    analyze(stored.folder)  # bits are no pictures: there are no maps
    assert not earlier.exists()


def test_an_unknown_test_set_is_named(stored):
    with pytest.raises(UnspurError, match=r"Unknown test set 'unbias'\. Did you mean 'unbiased'"):
        analyze(stored.folder, test="unbias")


def test_a_run_that_has_not_ended_is_refused(tmp_path):
    begun = Run.create(tmp_path, configure("erm", "parity", "fcn", 0, TINY))
    begun.begin()
    with pytest.raises(UnspurError, match="holds no finished run"):
        analyze(begun.folder)
    assert not (begun.folder / FILE).exists()


def look(model, classes=2, n=40):
    y = torch.arange(n) % 2
    split = Split(torch.randn(n, 6, generator=torch.Generator().manual_seed(0)), y)
    return _Look(model, Dataset("made", split, split, {"test": split}, tuple("abcde"[:classes])), split, 1000, 0)


def test_a_model_without_penultimate_activations_has_none_and_says_why():
    class Bare(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(6, 2))

        def forward(self, x):
            return x @ self.weight

    seen = look(Bare())
    assert seen.z is None and seen.representation() == {"class_separation": None, "csi": None, "bsi": None}
    assert "does not end in a linear layer" in seen.unknown["activations"]


def test_a_class_absent_from_the_sample_leaves_its_figures_unknown():
    seen = look(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 3)), classes=3)
    assert seen.representation()["csi"] is None
    assert "none of 40 samples has label 2" in seen.unknown["csi"]


def test_a_network_with_nothing_to_prune_says_so():
    seen = look(nn.Sequential(nn.Flatten(), nn.Linear(6, 2)))
    assert seen.compression()["prunability"]["node"] is None
    assert "nothing to prune" in seen.unknown["prunability.node"]


def test_the_surroundings_are_there_when_asked_for(stored, found):
    assert found["surroundings"] is None
    around = analyze(stored.folder, around=True)["surroundings"]
    assert len(around["loss"]) == len(around["axis"]) == 9 and around["spurious_by"] == "attribution"
    analyze(stored.folder)  # as the other tests know it


def test_background_is_what_lies_outside_the_objects_of_images_that_show_any():
    y = torch.arange(4) % 2
    split = Split(torch.randint(1, 256, (4, 1, 2, 2), dtype=torch.uint8), y)
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False))
    seen = _Look(model, Dataset("made", split, split, {"test": split}, ("a", "b")), split, 1000, 0)
    objects = torch.zeros(4, 2, 2, dtype=torch.bool)
    objects[:3, 0, 0] = True  # the last image shows nothing, and is left out
    # a linear model's Integrated Gradients are weight times input
    x = split.batch(torch.arange(4)).x.flatten(1)
    own = (model[1].weight.detach()[model(x).argmax(1)] * x).abs()
    share = own[:3, 1:].sum(1) / own[:3].sum(1)
    found = seen.attribution({}, objects[seen.index])["integrated_gradients"]["background"]
    assert found == pytest.approx(float(share.mean()), abs=1e-5)


def test_a_network_that_is_dead_is_warned_of_and_what_it_lacks_is_told():
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    with torch.no_grad():
        model[0].weight.zero_()
        model[0].bias.zero_()
    seen = look(model)
    assert "predicts one class for all inputs" in seen.warnings()[0]
    assert seen.attribution({})["integrated_gradients"] is None
    assert "does not depend on it" in seen.unknown["attribution.integrated_gradients"]
    assert not look(nn.Sequential(nn.Flatten(), nn.Linear(6, 2, bias=False))).warnings()


def sorted_by_class(n=400):
    y = torch.arange(n) * 2 // n
    split = Split(torch.randn(n, 3, 8, 8, generator=torch.Generator().manual_seed(0)), y, {"bias": torch.arange(n) % 2})
    return Dataset("made", split, split, {"test": split}, ("a", "b"), {"bias": ("x", "y")})


def test_what_is_attributed_is_of_all_classes_even_where_images_are_sorted_by_class():
    data = sorted_by_class()
    seen = _Look(nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), data, data.tests["test"], samples=1000, seed=0)
    assert 70 < int(seen.sample.y[:200].sum()) < 130
    assert sorted(seen.index.tolist()) == list(range(400))


def test_losses_of_fitted_samples_are_not_lost_in_rounding():
    # margins of 25 for aligned and 20 for conflicting samples: their losses are exp(-25) and exp(-20)
    n = 40
    bias, y = torch.arange(n) % 4 == 0, torch.zeros(n, dtype=torch.long)
    y[n // 2 :] = 1
    attribute = torch.where(bias, 1 - y, y)
    margin = torch.where(bias, 20.0, 25.0) * (2 * y - 1)
    split = Split(torch.stack([-margin, margin], 1) / 2, y, {"bias": attribute})
    data = Dataset("made", split, split, {"test": split}, ("a", "b"), {"bias": ("x", "y")})
    model = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False))
    with torch.no_grad():
        model[1].weight.copy_(torch.eye(2))
    seen = _Look(model, data, split, samples=n, seed=0)
    found = seen.training([])
    assert found["aligned_loss"] == pytest.approx(math.exp(-25), rel=1e-3)
    assert found["loss_ratio"] == pytest.approx(math.exp(-5), rel=1e-3)
    with torch.no_grad():
        model[1].weight.mul_(10)
    seen = _Look(model, data, split, samples=n, seed=0)
    assert seen.training([])["loss_ratio"] is None
    assert seen.unknown["training.loss_ratio"] == "The losses of conflicting samples are too small to be told from 0."


def test_what_needs_attributes_says_so_where_there_are_none():
    seen = look(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2)))
    assert seen.representation()["bsi"] is None and set(seen.training([]).values()) == {None}
    assert "no attributes" in seen.unknown["bsi"] and "no attributes" in seen.unknown["training"]


def test_activations_that_all_point_one_way_separate_nothing():
    model = nn.Sequential(nn.Linear(6, 1), nn.ReLU(), nn.Linear(1, 2))
    with torch.no_grad():
        model[0].bias.fill_(100.0)
    seen = look(model)
    assert seen.representation()["class_separation"] is None and "the same way" in seen.unknown["class_separation"]


def test_a_linear_model_has_no_activations_but_inputs():
    seen = look(nn.Sequential(nn.Flatten(), nn.Linear(6, 2)))
    assert seen.z is None and "no layer before the one that gives its logits" in seen.unknown["activations"]


def test_an_attribute_value_that_no_sample_has_is_told():
    rare = Split(torch.randn(40, 6), torch.arange(40) % 2, {"place": (torch.arange(40) == 7).long()})
    net = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    seen = _Look(net, Dataset("made", rare, rare, {"test": rare}, ("a", "b")), rare, 5, 0)
    assert seen.representation()["bsi"] is None and "none of 5 samples has label 1" in seen.unknown["bsi.place"]


def test_values_that_are_no_numbers_are_none_and_told():
    reasons = {}
    assert _finite({"a": {"b": [1.0, math.nan]}, "c": 2, "d": math.inf}, reasons) == {
        "a": {"b": [1.0, None]},
        "c": 2,
        "d": None,
    }
    assert set(reasons) == {"a.b", "d"}


def test_a_run_that_diverged_has_no_model_to_analyse(tmp_path):
    config = configure("erm", "parity", "fcn", 0, [*TINY, "erm.lr=1e30"])
    run(config, tmp_path)
    with pytest.raises(UnspurError, match="diverged, so no model; train again at a lower rate"):
        analyze(Run.create(tmp_path, config).folder)


def test_trainings_that_were_given_up_do_not_count(tmp_path):
    stored = Run(tmp_path, configure("large_lr", "parity", "fcn", 0, []))
    lines = [{"stage": "erm", "loss_ratio": 0.9}, {"stage": "erm-2", "loss_ratio": 0.4}]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for kept, counted in (("erm-2", lines[1:]), (None, lines)):
        stored.end("done", 1.0, 1, tests={}, trained=kept)
        assert stored.kept_log() == counted
