import math
from dataclasses import replace

import pytest

from report.examples import tiny
from unspur.data.catalog import dataset_named
from unspur.errors import DataMissing
from unspur.papers import reproduce as module
from unspur.papers.reproduce import reproduce, table_named
from unspur.papers.table import Fact, Score
from unspur.parts.mining import GCE, EarlyStopped, EpochEnsemble


def cells(name):
    return {(cell.row, cell.column): cell for cell in table_named(f"dcwp/{name}").cells}


def config(cell, seed=0):
    return cell.setup.config(seed)


def test_the_published_values_are_the_papers():
    one, two, three = (
        {place: cell.published for place, cell in cells(name).items()} for name in ("table1", "table2", "table3")
    )
    # Table 1 has 9 rows of 7 methods; the rows and columns of some, as printed
    assert len(one) == 63
    heads = ("ERM", "EnD", "Rebias", "MRM", "LfF", "DisEnt", "DCWP")
    assert [one["CMNIST, 1.0 %", head] for head in heads] == [81.73, 94.98, 84.65, 80.42, 88.44, 93.15, 95.98]
    assert [one["BFFHQ, 0.5 %", head] for head in heads] == [52.25, 59.80, 54.90, 54.75, 56.50, 55.50, 60.35]
    ratios = ("0.5", "1.0", "2.0", "5.0")
    assert [one[f"CMNIST, {ratio} %", "DCWP"] for ratio in ratios] == [93.41, 95.98, 97.16, 98.02]
    assert [one[f"CIFAR10-C, {ratio} %", "ERM"] for ratio in ratios] == [22.02, 28.00, 34.63, 45.66]
    assert [one[f"CIFAR10-C, {ratio} %", "MRM"] for ratio in ratios] == [23.92, 27.77, 33.53, 47.00]
    assert [one[f"CIFAR10-C, {ratio} %", "DCWP"] for ratio in ratios] == [35.90, 41.56, 49.01, 56.17]
    assert list(two.values()) == [43.10, 69.78, 73.20, 74.80, 75.15, 76.49, 79.28, 84.79, 87.96]
    # Table 3: no mining metrics for the three rows of other methods, so 7 * 5 - 3 * 2
    assert len(three) == 29
    heads = ("bias-align", "bias-conflict", "unbiased", "precision", "recall")
    assert [three["CIFAR10-C, DCWP_ERM", head] for head in heads] == [94.33, 29.75, 36.21, 19.71, 79.53]
    assert [three["BFFHQ, DCWP", head] for head in heads] == [98.85, 60.35, 79.60, 30.61, 31.25]
    assert [three["BFFHQ, LfF", head] for head in heads[:3]] == [96.05, 56.50, 76.30]


def test_every_column_is_run_by_the_method_that_it_names():
    methods = {"ERM": "dcwp", "EnD": "end", "Rebias": "rebias", "MRM": "mrm", "LfF": "lff", "DisEnt": "disent"}
    for name in ("table1", "table1-short", "table3"):
        for (row, column), cell in cells(name).items():
            who = row.split(", ")[1] if name == "table3" else column
            assert cell.setup.method == methods.get(who, "dcwp"), (row, column)


def test_the_other_methods_are_trained_as_the_appendix_says_and_on_the_same_images():
    rows = ("CMNIST, 1.0 %", "CIFAR10-C, 1.0 %", "BFFHQ, 0.5 %")
    made = {
        who: [config(cells("table1")[row, who]) for row in rows] for who in ("EnD", "Rebias", "LfF", "DisEnt", "MRM")
    }
    for configs in made.values():
        assert [(one.data, one.arch) for one in configs] == [(one.data, one.arch) for one in made["MRM"]]
    # E.2: EnD's multipliers are 1; LfF's q is 0.7; ReBias but for CMNIST 200 epochs, Adam at 0.001, radius 1
    assert [(one.method.alpha, one.method.beta) for one in made["EnD"]] == [(1, 1)] * 3
    assert [one.method.training for one in made["EnD"]] == [one.method.erm for one in made["MRM"]]
    assert [one.method.q for one in made["LfF"]] == [0.7] * 3
    recipes = [one.method.training for one in made["Rebias"]]
    assert [(recipe.name, recipe.lr, recipe.epochs) for recipe in recipes[1:]] == [("adam", 0.001, 200)] * 2
    assert [one.method.radius for one in made["Rebias"]] == [1] * 3
    # DisEnt's script: 50,000 steps, of which the first fifth without swapping; weights 10, 5 and 2
    images = (55_000, 44_969, 19_200)
    for one, count in zip(made["DisEnt"], images, strict=True):
        recipe = one.method.training
        assert recipe.epochs * (count // recipe.batch_size) == pytest.approx(50_000, rel=0.01)
        assert one.method.after * 50_000 == 10_000  # where codes begin to change places
        gamma = 0.1 if one.data.name == "bffhq" else 0.5
        for step, drops in ((19_999, 0), (20_000, 1), (30_000, 2), (49_999, 3)):
            assert recipe.schedule.factor(0, 1, step) == pytest.approx(gamma**drops)
    assert [(one.method.bias, one.method.swap) for one in made["DisEnt"]] == [(10, 1), (5, 1), (2, 0.1)]
    half = config(cells("table1")["CIFAR10-C, 0.5 %", "DisEnt"]).method
    assert (half.bias, half.training.lr) == (1, 5e-4)


def test_erm_is_the_first_stage_of_dcwp_so_that_both_are_one_run():
    for row in {row for row, _ in cells("table1")}:
        erm, ours = cells("table1")[row, "ERM"], cells("table1")[row, "DCWP"]
        assert erm.setup == ours.setup and erm.measure.stage == "erm" and ours.measure.stage is None
        assert config(cells("table1")[row, "MRM"]).method.erm == config(ours).method.erm


@pytest.mark.parametrize(
    ("ratio", "mnist", "cifar", "up"),
    [  # E.1's numbers of aligned and conflicting samples; lambda_up in the order of the authors' scripts
        ("0.5", (54_751, 249), (44_832, 228), 80),
        ("1.0", (54_509, 491), (44_527, 442), 50),
        ("2.0", (54_014, 986), (44_145, 887), 30),
        ("5.0", (52_551, 2_449), (42_820, 2_242), 10),
    ],
)
def test_each_ratio_has_the_appendixs_counts_and_its_lambda_up(ratio, mnist, cifar, up):
    digits, objects = (config(cells("table1")[f"{data}, {ratio} %", "DCWP"]) for data in ("CMNIST", "CIFAR10-C"))
    assert (digits.data.conflict_count, digits.data.val) == (
        mnist[1],
        None,
    )  # by default 55,000 of MNIST are trained on
    assert sum(mnist) == 55_000
    assert (objects.data.conflict_count, 50_000 - objects.data.val) == (cifar[1], sum(cifar))
    assert digits.method.tuning.up == objects.method.tuning.up == up
    assert digits.method.masks.up == objects.method.masks.up == 80


def test_the_schedules_are_the_appendixs():
    digits, objects, faces = (
        config(cells("table1")[row, "DCWP"]) for row in ("CMNIST, 1.0 %", "CIFAR10-C, 1.0 %", "BFFHQ, 0.5 %")
    )

    def steps(recipe, images):
        return recipe.epochs * math.ceil(images / recipe.batch_size)

    for made, images in ((digits, 55_000), (objects, 44_969), (faces, 19_200)):
        assert steps(made.method.erm, images) == pytest.approx(10_000, rel=0.02)  # whole epochs
        assert (made.method.masks.steps, made.method.masks.lr, made.method.masks.align) == (2000, 0.01, 0.05)
        assert (made.method.tuning.steps, made.method.tuning.align) == (1000, 0.05)
    assert [made.method.erm.lr for made in (digits, objects, faces)] == [0.01, 0.001, 0.001]
    assert [made.method.erm.name for made in (digits, objects, faces)] == ["adam"] * 3
    assert [made.method.tuning.lr for made in (digits, objects, faces)] == [0.001, 0.0005, 0.0005]
    assert [made.method.masks.l1 for made in (digits, objects, faces)] == [1e-8, 1e-9, 1e-9]
    assert [made.method.masks.start for made in (digits, objects, faces)] == [0, 1.5, 1.5]
    assert [made.method.mining.training.name for made in (digits, objects, faces)] == ["sgd", "adam", "adam"]
    assert [made.arch.name for made in (digits, objects, faces)] == ["cnn3", "resnet18", "resnet18"]
    assert [getattr(made.arch, "weights", None) for made in (objects, faces)] == ["default"] * 2
    # mining: GCE with q = 0.7 for 2,000 and 10,000 steps, and the ensemble
    assert isinstance(digits.method.mining, GCE) and isinstance(faces.method.mining, GCE)
    assert steps(digits.method.mining.training, 55_000) == pytest.approx(2000, rel=0.04)
    assert steps(faces.method.mining.training, 19_200) == pytest.approx(10_000, rel=0.02)
    assert isinstance(objects.method.mining, EpochEnsemble)
    assert (objects.method.mining.score, objects.method.mining.confidence) == (0.8, 0.05)
    # augmentation: none, crops of 4 padded pixels and flips, flips
    moves = [(made.data.augment.pad, made.data.augment.flip) for made in (objects, faces)]
    assert moves == [(4, True), (0, True)] and not hasattr(digits.data, "augment")
    for row in ("CIFAR10-C, 1.0 %", "BFFHQ, 0.5 %"):
        assert config(cells("table1")[row, "MRM"]).method.masks.l1 == 1e-9


def test_the_rows_of_table_2_switch_what_they_say():
    for (row, _), cell in cells("table2").items():
        made, switches = config(cell).method, row.split(" ")[1].strip("()-")
        found = "".join(
            letter
            for letter, on in {
                "a": made.tuning.up > 1,
                "b": made.prune,
                "c": made.prune and made.masks.align > 0,
                "d": made.tuning.align > 0,
                "e": isinstance(made.mining, GCE),
            }.items()
            if on
        )
        assert found == switches, row
        assert [made.erm.name, made.mining.training.name, made.tuning.optimiser] == ["sgd"] * 3
        # 9 epochs of 215 batches are 1,935 of Figure 1a's 2,000 steps; without (e) the mining is as long
        assert (made.erm.epochs, made.mining.training.epochs) == (9, 9)
        assert config(cell).data.conflict_count == 491


def test_table_3_differs_from_table_1_by_the_mining_alone():
    for data, row in (("CIFAR10-C", "CIFAR10-C, 1.0 %"), ("BFFHQ", "BFFHQ, 0.5 %")):
        ours, stopped = (cells("table3")[f"{data}, {model}", "recall"] for model in ("DCWP", "DCWP_ERM"))
        assert ours.setup == cells("table1")[row, "DCWP"].setup and ours.measure == Fact("mining", "recall")
        assert isinstance(config(stopped).method.mining, EarlyStopped)
        same = [(config(c).method.erm, config(c).method.masks, config(c).method.tuning) for c in (ours, stopped)]
        assert same[0] == same[1]
        assert config(stopped).method.mining.training.name == "adam"
    assert cells("table3")["BFFHQ, DCWP", "bias-conflict"].measure == Score("test", "conflicting_accuracy")


def test_figure_1a_prunes_alike_with_and_without_a_reset():
    rows = {row: config(cell).method for (row, _), cell in cells("figure1a").items()}
    assert rows["MRM_debias"].masks == rows["DCWP"].masks and rows["MRM_debias"].mining == rows["DCWP"].mining


def test_figure_1b_changes_the_length_of_the_mask_training_alone():
    table, whole = cells("figure1b"), config(cells("table1")["CMNIST, 1.0 %", "DCWP"])
    rows = [row for row, column in table if column == "kept"]
    assert rows == ["500 steps", "1,000 steps", "1,500 steps", "2,000 steps"]
    for row, column in table:
        made, steps = config(table[row, column]), int(row.split(" ")[0].replace(",", ""))
        masks = replace(whole.method.masks, steps=steps)
        assert made == replace(whole, method=replace(whole.method, masks=masks))
    assert table["500 steps", "kept"].measure == Fact("kept")


def test_the_short_schedule_needs_no_published_weights_and_both_tables_share_its_runs():
    first, third = cells("table1-short"), cells("table3-short")
    for model in ("DCWP", "DisEnt"):
        assert third[f"CIFAR10-C, {model}", "unbiased"].setup == first["CIFAR10-C, 1.0 %", model].setup
    stopped = config(third["CIFAR10-C, DCWP_ERM", "unbiased"]).method
    assert isinstance(stopped.mining, EarlyStopped) and (stopped.erm.epochs, stopped.masks.steps) == (3, 400)
    assert [row for row, column in first if column == "LfF"] == [
        "CMNIST, 0.5 %", "CMNIST, 1.0 %", "CMNIST, 2.0 %", "CMNIST, 5.0 %", "CIFAR10-C, 1.0 %",
    ]  # fmt: skip
    for cell in (*first.values(), *third.values()):
        made = config(cell)
        if made.data.name == "corrupted_cifar10":
            assert (made.arch.weights, made.data.cifar, made.data.conflict_count) == ("none", "jpeg", 442)
        else:  # the network, the images and the numbers of Table 1
            whole = config(cells("table1")[cell.row, cell.column])
            assert (made.data, made.arch) == (whole.data, whole.arch)
        epochs = 3 if made.data.name == "corrupted_cifar10" else 6
        if made.method.name in ("mrm", "dcwp"):
            assert (made.method.erm.epochs, made.method.masks.steps, made.method.masks.start) == (epochs, 400, 0)
        else:
            assert made.method.training.epochs == epochs


def test_the_whole_family_runs_quickly_on_few_images(tmp_path, monkeypatch):
    data = tiny()
    data = replace(data, name="colored_mnist", tests={"unbiased": data.tests["original"]})
    monkeypatch.setattr(dataset_named("colored_mnist"), "load", lambda self, files: data)
    out = {"results": tmp_path / "results", "runs": tmp_path / "runs"}
    outcome = reproduce(table_named("dcwp/figure1a"), [0], quick=True, **out)
    assert outcome["skipped"] == {}
    assert [(cell["row"], cell["published"]) for cell in outcome["cells"]] == [
        ("ERM", None),
        ("MRM_debias", None),
        ("DCWP_fine", 79.28),
        ("DCWP", 87.96),
    ]
    assert all(0 < cell["ours"] < 100 for cell in outcome["cells"])


def test_a_fact_is_read_in_per_cent_and_what_is_unknown_stays_so():
    result = {"facts": {"mining": {"precision": 0.25, "recall": None}, "kept": 0.5}}
    assert Fact("kept").of(None, result, None) == 50.0
    assert Fact("mining", "precision").of(None, result, None) == 25.0
    assert Fact("mining", "recall").of(None, result, None) is None


def test_published_weights_that_cannot_be_had_are_skipped_and_named(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise DataMissing("The published weights of resnet18 cannot be downloaded.")

    monkeypatch.setattr(module, "run", refuse)
    outcome = reproduce(table_named("dcwp/table1"), [0, 1], only=["bffhq"], results=tmp_path, runs=tmp_path)
    outcome["skipped"] = {who: why for who, why in outcome["skipped"].items() if "--only" not in why}
    assert set(outcome["skipped"]) == {
        f"BFFHQ, 0.5 %: {who} on bffhq, resnet18" for who in ("dcwp", "end", "rebias", "mrm", "lff", "disent")
    }


def test_mrms_masks_begin_where_dcwps_do():
    rows = [row for row, column in cells("table1") if column == "MRM"]
    for row in rows:
        mrm, dcwp = (config(cells("table1")[row, method]).method.masks.start for method in ("MRM", "DCWP"))
        assert mrm == dcwp
    assert config(cells("table1")["CMNIST, 2.0 %", "MRM"]).method.masks.start == 0


def test_the_mining_of_the_authors_script_falls_to_a_tenth_after_each_600_steps():
    found = config(cells("table1-mining")["CMNIST, 2.0 %", "DCWP"])
    recipe = found.method.mining.training
    # 0.1 up to step 599, 0.01 up to 1,199, 0.001 up to 1,799
    assert [round(recipe.rate(0, step), 6) for step in (0, 599, 600, 1199, 1200, 1799)] == [
        0.1, 0.1, 0.01, 0.01, 0.001, 0.001,
    ]  # fmt: skip
    ours = config(cells("table1")["CMNIST, 2.0 %", "DCWP"])
    assert ours.method.mining.training.rate(0, 1799) == 0.01
    assert replace(found, method=replace(found.method, mining=ours.method.mining)) == ours  # and nothing else differs
