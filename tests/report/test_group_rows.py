import torch

from unspur.data.base import Dataset, Split
from unspur.report.group_rows import MOST_ROWS, split_rows


def many_groups() -> Dataset:
    """Ten classes by ten values, value = class in training: 100 groups in the test set, 10 of them aligned."""
    y, value = torch.arange(100) % 10, torch.arange(100) // 10
    images = torch.zeros(100, 3, 4, 4, dtype=torch.uint8)
    train = Split(images[:10], torch.arange(10), {"colour": torch.arange(10)})
    names = tuple("abcdefghij")
    return Dataset("many", train, train, {"test": Split(images, y, {"colour": value})}, names, {"colour": names})


def test_many_groups_are_pooled_into_aligned_and_conflicting():
    data = many_groups()
    rows = split_rows(data.tests["test"], data)
    assert rows.pooled
    assert [(title, aligned, len(index)) for title, aligned, index in rows.rows] == [
        ("all aligned groups", True, 10),
        ("all conflicting groups", False, 90),
    ]


def test_many_classes_without_attributes_are_one_row():
    y = torch.arange(2 * (MOST_ROWS + 1)) // 2
    split = Split(torch.zeros(len(y), 3, 4, 4, dtype=torch.uint8), y)
    data = Dataset("plain", split, split, {"test": split}, tuple(map(str, range(MOST_ROWS + 1))))
    (row,) = split_rows(split, data).rows
    assert (row[0], row[1], len(row[2])) == ("all classes", None, len(y))
