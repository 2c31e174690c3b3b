from unspur.config import configure
from unspur.demo import QUICK


def quick(method):
    return configure(method, "biased_mnist", "small_cnn", 0, ["data.base=mini", *QUICK[method]]).method


def test_every_repair_of_the_demo_begins_with_the_plain_training_that_it_is_compared_with():
    assert {"erm", "masktune", "dcwp"} <= set(QUICK)
    assert {quick(method).erm for method in QUICK} == {quick("erm").erm}
