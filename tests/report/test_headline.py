from unspur.report.headline import Finding, headline, telling_test
from unspur.report.rows import Scored, Share


def test_set(name, accuracy=0.5, aligned=None, conflicting=None, attributes=("square",), n=100):
    def share(value):
        return None if value is None else Share(value, 0.0, 1.0, n)

    return Scored(name, attributes, Share(accuracy), None, share(aligned), share(conflicting), None, None, ())


test_set.__test__ = False


def said(*findings):
    return headline(findings).replace("\N{NO-BREAK SPACE}", " ")


def finding(*tests, label="erm", dataset="biased_mnist"):
    return Finding(label, dataset, "images", tests)


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
