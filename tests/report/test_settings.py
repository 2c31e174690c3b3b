from report.examples import config
from unspur.report.settings import labels, settings
from unspur.runs.config import configure


def test_runs_that_differ_in_precision_alone_are_told_apart():
    assert labels([config(), config("precision=bf16")]) == ["erm precision=full", "erm precision=bf16"]


def test_settings_that_were_changed_are_told_from_defaults():
    rows = {row.key: row for row in settings(config("erm.lr=0.5"))}
    assert (rows["erm.lr"].value, rows["erm.lr"].changed) == ("0.5", True)
    assert (rows["erm.momentum"].value, rows["erm.momentum"].changed) == ("0.9", False)
    assert (rows["data.base"].value, rows["data.base"].changed) == ("mini", True)
    assert rows["erm.lr"].comment == "learning rate"


def test_settings_name_the_method_the_data_the_arch_and_the_seed():
    rows = {row.key: row.value for row in settings(config(seed=3))}
    chosen = {key: rows[key] for key in ("method", "data.name", "arch.name", "seed")}
    assert chosen == {"method": "erm", "data.name": "biased_mnist", "arch.name": "small_cnn", "seed": "3"}


def test_runs_are_called_by_what_sets_them_apart():
    assert labels([config(), config("erm.lr=0.5")]) == ["erm erm.lr=0.01", "erm erm.lr=0.5"]


def test_runs_that_differ_by_seed_alone_are_called_the_same():
    assert labels([config(), config(seed=1)]) == ["erm", "erm"]


def test_methods_that_had_different_networks_say_so():
    ule = configure("ule", "biased_mnist", "cnn2", 0, ["data.base=mini"])
    erm = configure("erm", "biased_mnist", "small_cnn", 0, ["data.base=mini"])
    assert labels([erm, ule]) == ["erm small_cnn", "ule cnn2"]


def test_another_architecture_is_named_without_all_its_options():
    names = labels([config(), config(arch="fcn"), config("arch.width=7", arch="fcn")])
    assert names == ["erm small_cnn", "erm fcn arch.width=1024", "erm fcn arch.width=7"]


def test_another_version_of_the_data_sets_a_run_apart():
    assert labels([config("data.conflict=0.1"), config("data.conflict=0.2")]) == [
        "erm data.conflict=0.1",
        "erm data.conflict=0.2",
    ]


def test_a_setting_that_only_one_of_two_runs_has_sets_it_apart():
    names = labels([config(), config("erm.schedule=step", "erm.schedule.every=1")])
    assert names == ["erm erm.schedule=constant", "erm erm.schedule=step erm.schedule.every=1 erm.schedule.gamma=0.5"]
