from unspur.practice.demo import QUICK
from unspur.runs.config import configure


def quick(method):
    arch, settings = QUICK[method]
    return configure(method, "biased_mnist", arch, 0, ["data.base=mini", *settings]).method


def test_every_repair_of_the_demo_begins_with_the_plain_training_that_it_is_compared_with():
    assert set(QUICK) == {"erm", "masktune", "dcwp", "ule"}
    assert {quick(method).erm for method in QUICK if method != "ule"} == {quick("erm").erm}  # ULE brings a student
