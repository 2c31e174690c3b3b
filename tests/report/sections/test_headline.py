from unspur.report.scores import Scored, Share
from unspur.report.sections.headline import Finding, headline, telling_test


def test_set(name, accuracy=0.5, aligned=None, conflicting=None, attributes=("square",), n=100, only=None):
    def share(value):
        return None if value is None else Share(value, 0.0, 1.0, n)

    return Scored(name, attributes, Share(accuracy), None, share(aligned), share(conflicting), None, None, (), only)


test_set.__test__ = False


def said(*findings):
    return headline(findings).replace("\N{NO-BREAK SPACE}", " ")


def finding(*tests, label="erm", dataset="biased_mnist", warnings=()):
    return Finding(label, dataset, "images", tests, warnings)


def test_one_run_is_told_by_where_the_shortcut_helps_and_where_it_misleads():
    assert said(finding(test_set("test", aligned=0.998, conflicting=0.312))) == (
        "A classifier trained with erm is right on 99.8 % of the test images in which class and square go together as "
        "in training, and on 31.2 % of those in which they do not."
    )


def test_the_test_set_with_the_lowest_conflicting_accuracy_is_chosen():
    tests = [test_set("original", aligned=0.99, conflicting=0.4), test_set("biased", conflicting=0.1)]
    assert telling_test(tests).name == "biased"


def test_a_test_set_with_few_conflicting_images_is_passed_over():
    # 49 of 100 is less than half, 50 is not.
    large = test_set("unbiased", conflicting=0.4, n=100)
    assert telling_test([large, test_set("colored", conflicting=0.1, n=49)]).name == "unbiased"
    assert telling_test([large, test_set("colored", conflicting=0.1, n=50)]).name == "colored"


def test_a_test_set_without_aligned_images_borrows_them_from_another():
    tests = [test_set("original", aligned=0.99, conflicting=0.4), test_set("biased", conflicting=0.1)]
    assert said(finding(*tests)) == (
        "A classifier trained with erm is right on 99.0 % of the “original” test images in which class and square go "
        "together as in training, and on 10.0 % of the “biased” test images, in which they do not."
    )


def test_without_any_aligned_images_only_the_conflicting_ones_are_told():
    assert said(finding(test_set("biased", conflicting=0.1))) == (
        "A classifier trained with erm is right on 10.0 % of the “biased” test images, in which class and square do "
        "not go together as in training."
    )


def test_several_attributes_are_named_together():
    sentence = said(finding(test_set("test", aligned=1.0, conflicting=0.0, attributes=("square", "colour"))))
    assert "in which class, square and colour go together as in training" in sentence


def test_without_a_shortcut_the_accuracies_are_told():
    assert said(finding(test_set("test", 0.985), dataset="mnist")) == (
        "A classifier trained with erm is right on 98.5 % of the test images."
    )


def test_several_runs_are_compared_where_the_shortcut_misleads_worst_first():
    runs = [
        finding(test_set("biased", conflicting=0.9), label="masktune"),
        finding(test_set("biased", conflicting=0.1)),
    ]
    assert said(*runs) == (
        "Of the “biased” test images in which class and square do not go together as in training, erm gets 10.0 % "
        "right and masktune 90.0 %."
    )


def test_seeds_are_averaged():
    runs = [finding(test_set("biased", conflicting=value)) for value in (0.1, 0.3)]
    assert said(*runs).endswith("erm gets 20.0 % right, averaged over seeds.")


def test_many_runs_are_told_by_their_extremes():
    runs = [finding(test_set("biased", conflicting=n / 10), label=f"erm erm.lr={n}") for n in range(1, 7)]
    assert said(*runs).endswith("between 10.0 % (erm erm.lr=1) and 60.0 % (erm erm.lr=6) are classified right.")


def test_without_conflicting_images_runs_are_compared_on_the_hardest_test_set():
    # As with mnist_sc: in one test set every image has the shortcut, in the other none.
    runs = [
        finding(test_set("code", 0.99), test_set("plain", 0.96), label="ule"),
        finding(test_set("code", 1.0), test_set("plain", 0.79)),
    ]
    assert said(*runs) == "Of the “plain” test images, erm gets 79.0 % right and ule 96.0 %."


def test_runs_on_several_data_sets_are_counted():
    runs = [finding(test_set("test"), dataset=name) for name in ("mnist", "biased_mnist", "mnist")]
    assert said(*runs) == "3 finished runs on 2 data sets: biased_mnist and mnist."


def test_a_page_without_any_result_says_so():
    assert said() == "No run on this page has a result; each one below says why."


UNCHANGED = "The repair changed nothing: the result predicts the same as before for all 5,000 images of validation."


def test_a_model_that_predicts_one_class_is_never_said_to_be_right():
    blind = finding(test_set("original", 0.5, only="0-4"), test_set("biased", conflicting=0.5, only="0-4"))
    assert said(blind) == (
        "The classifier trained with erm predicts “0-4” for every test image: its accuracy says nothing."
    )


def test_one_class_on_one_of_the_test_sets_is_said_behind_what_the_others_show():
    tests = [test_set("unbiased", aligned=0.99, conflicting=0.4), test_set("grey", 0.1, only="3")]
    assert said(finding(*tests)).endswith(
        "40.0 % of those in which they do not. For every one of the “grey” test images it predicts “3”."
    )


def test_among_several_runs_one_class_stands_in_place_of_an_accuracy():
    runs = [
        finding(test_set("biased", conflicting=0.9), label="masktune"),
        finding(test_set("biased", conflicting=0.5, only="0-4")),
    ]
    assert said(*runs).endswith("as in training, erm predicts “0-4” for all and masktune gets 90.0 % right.")


def test_among_many_runs_those_that_predict_one_class_are_counted_and_not_averaged():
    runs = [finding(test_set("biased", conflicting=n / 10), label=f"erm erm.lr={n}") for n in range(1, 5)]
    blind = finding(test_set("biased", conflicting=0.0, only="0-4"), label="erm erm.lr=9")
    assert said(*runs, blind).endswith(
        "1 of the 5 kinds of runs predict one class for all and between 10.0 % (erm erm.lr=1) and 40.0 % "
        "(erm erm.lr=4) are classified right."
    )


def test_runs_that_all_predict_one_class_have_no_accuracy_to_compare():
    runs = [finding(test_set("biased", conflicting=0.5, only="0-4"), label=label) for label in ("erm", "dcwp")]
    assert said(*runs).endswith("erm predicts “0-4” for all and dcwp predicts “0-4” for all.")


def test_a_repair_that_changed_nothing_says_so_in_the_headline():
    repair = finding(test_set("biased", conflicting=0.1), label="masktune", warnings=[UNCHANGED, "Besides."])
    assert said(repair).endswith(f"as in training. {UNCHANGED}")
    other = finding(test_set("biased", conflicting=0.9), label="dcwp")
    assert said(repair, other).endswith(f"masktune gets 10.0 % right and dcwp 90.0 %. masktune: {UNCHANGED}")


def test_warnings_of_many_runs_are_counted():
    runs = [finding(test_set("biased", conflicting=n / 10), label=f"run {n}", warnings=["w"]) for n in range(3)]
    assert said(*runs).endswith(" 3 runs have warnings, which each shows first.")


def test_on_several_data_sets_too_one_class_is_named():
    runs = [finding(test_set("test", only="3"), dataset="mnist"), finding(test_set("test"), dataset="parity")]
    assert said(*runs) == "2 finished runs on 2 data sets: mnist and parity. One class for everything: erm on mnist."
