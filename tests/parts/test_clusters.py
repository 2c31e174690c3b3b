import pytest
import torch
from sklearn.metrics import silhouette_score

from unspur.parts.clusters import best_clusters, kmeans, silhouette


def blobs(sizes, width=0.1, seed=0):
    generator = torch.Generator().manual_seed(seed)
    centres = 5.0 * torch.arange(len(sizes))[:, None] * torch.tensor([[1.0, -1.0]])
    of = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return centres[of] + width * torch.randn(len(of), 2, generator=generator), of


def test_blobs_far_apart_are_the_clusters_whatever_their_sizes():
    x, of = blobs([200, 5, 40])
    found = kmeans(x, 3, torch.Generator().manual_seed(1))
    assert len(torch.stack([of, found], 1).unique(dim=0)) == 3  # one to one


def test_the_silhouette_is_scikit_learns():
    x, of = blobs([30, 20, 1], width=3.0)
    assert silhouette(x, of) == pytest.approx(silhouette_score(x.numpy(), of.numpy()), abs=1e-6)


def test_the_number_of_clusters_is_that_with_the_highest_silhouette():
    x, of = blobs([50, 40, 10])
    found = best_clusters(x, 8, torch.Generator().manual_seed(2))
    assert int(found.of.max()) + 1 == 3 and found.silhouette == pytest.approx(silhouette(x, of))


def test_points_that_are_all_the_same_are_one_cluster():
    assert best_clusters(torch.ones(5, 2), 4, torch.Generator()).of.tolist() == [0] * 5
    assert best_clusters(torch.ones(1, 2), 4, torch.Generator()).of.tolist() == [0]


def test_probabilities_near_one_are_told_apart():
    # in single precision their distances are lost in the squares
    generator = torch.Generator().manual_seed(0)
    gap = torch.cat([torch.full((900,), 1e-5), torch.full((100,), 1e-4)]) * (
        1 + 0.1 * torch.rand(1000, generator=generator)
    )
    x = torch.stack([1 - gap, gap], 1).double()
    found = best_clusters(x.float(), 10, torch.Generator().manual_seed(1))
    assert torch.bincount(found.of).tolist() in ([900, 100], [100, 900]) and found.silhouette > 0.9


def test_points_of_as_many_kinds_as_clusters_are_those_clusters():
    x = torch.tensor([[1.0, 0.0]] * 95 + [[0.0, 1.0]] * 5)
    found = best_clusters(x, 10, torch.Generator().manual_seed(0))
    assert sorted(torch.bincount(found.of).tolist()) == [5, 95] and found.silhouette == pytest.approx(1.0)
