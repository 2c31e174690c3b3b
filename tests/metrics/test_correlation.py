import pytest
from scipy import stats

from unspur.metrics.correlation import correlation, rank_correlation

PAIRS = [
    ([1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 4.0, 3.0]),
    ([0.001, 0.01, 0.1, 1.0, 1.0], [5.0, 5.0, 7.0, 6.0, 9.0]),  # ties in both
    ([3.0, 1.0, 2.0], [-3.0, -1.0, -2.0]),
]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_both_agree_with_scipy(a, b):
    assert correlation(a, b) == pytest.approx(stats.pearsonr(a, b).statistic)
    assert rank_correlation(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)


@pytest.mark.parametrize(("a", "b"), [([], []), ([1.0], [2.0]), ([1.0, 1.0], [1.0, 2.0])])
def test_where_nothing_varies_there_is_no_correlation(a, b):
    assert correlation(a, b) is None and rank_correlation(a, b) is None


def test_series_of_different_length_are_refused():
    with pytest.raises(ValueError, match="2 and 1 values"):
        correlation([1.0, 2.0], [1.0])
