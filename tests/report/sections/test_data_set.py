import torch

from report.examples import tiny
from unspur.data.base import Dataset, Split
from unspur.report.sections.data_set import samples


def test_training_images_are_shown_for_every_group_with_its_size():
    pooled, rows = samples(tiny())
    assert not pooled
    assert [(row.title, row.aligned, row.count, len(row.images)) for row in rows] == [
        ("low, square: absent", False, 2, 2),
        ("low, square: present", True, 18, 12),
        ("high, square: absent", True, 18, 12),
        ("high, square: present", False, 2, 2),
    ]


def test_vectors_have_no_pictures():
    split = Split(torch.zeros(4, 5), torch.tensor([0, 0, 1, 1]))
    _, rows = samples(Dataset("vectors", split, split, {"test": split}, ("a", "b")))
    assert [(row.count, row.images) for row in rows] == [(2, ()), (2, ())]
