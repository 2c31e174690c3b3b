"""Figures of the large-learning-rate paper (arXiv:2507.17748) that show sweeps without printing their values.

Figures 10 (CIFAR-10 and CIFAR-100), 11 (ImageNet-1k), 18 (Waterbirds) and 28 (other optimisers, D.4) as tables of
lowest and highest values, so that they can be run as Tables 1 and 2 are.
"""

from __future__ import annotations

from collections.abc import Sequence

from unspur.papers.large_lr import ARCHS, BASE, COLUMNS, HEADS, PICKS, QUICK, USABLE, left_open, rates
from unspur.papers.table import Analysed, Cell, Measure, Score, Setup, Table

ACCURACY = "Test Acc."
Published = tuple[float | None, float | None]
NOTHING: Published = (None, None)
CALLED = {**HEADS, "class separation": "Class Sep.", "attribution entropy": "Attr. Entropy"}


def swept(
    row: str,
    sweep: tuple[Setup, ...],
    score: Score,
    accuracy: Published = NOTHING,
    columns: Sequence[str] = COLUMNS,
) -> list[Cell]:
    """The lowest and highest value of columns, Table 1's, over a sweep; prunability by what ``score`` is of."""
    worst = score.field == "worst_group_accuracy"
    measures: dict[str, Measure] = {ACCURACY: score}
    for figure in columns:
        own = "worst-group prunability" if worst and figure == "prunability" else figure
        measures[CALLED[figure]] = Analysed(own)
    return [
        Cell(row, f"{column} {word}", value if column == ACCURACY else None, None, None, measure, sweep, pick)
        for column, measure in measures.items()
        for (word, pick), value in zip(PICKS, accuracy, strict=True)
    ]


def over_rates(data: str, model: str, settings: tuple[str, ...], low: float, high: float) -> tuple[Setup, ...]:
    return tuple(Setup("erm", data, ARCHS[model], settings, f"erm.lr={rate}") for rate in rates(low, high))


TEST, WORST, UNBIASED = Score("test"), Score("test", "worst_group_accuracy"), Score("unbiased")
SGD = (*BASE, "erm.epochs=50")
# 4.2: as CelebA's Swin Transformer, in batches of 16.
PRETRAINED = ("erm=adamw", "erm.batch_size=16", "erm.until_accuracy=1", "erm.epochs=10", "arch.weights=default")
# D.4: "a standard CIFAR-100 setup with AdamW, cosine annealing, weight decay, and validation set based model selection"
STANDARD = (
    "erm=adamw", "erm.schedule=cosine", "erm.weight_decay=0.01", "erm.batch_size=100", "erm.epochs=50",
    "data.val=5000", "keep=best",
)  # fmt: skip
KRON = ("erm=kron", "erm.schedule=wsd", "erm.batch_size=100", "erm.epochs=50", "data.val=0")

ENTROPY = (*COLUMNS, "attribution entropy")  # 5: attributions that are spread out lie on background or texture
FIGURE_10 = (
    *swept("CIFAR-10, ResNet18", over_rates("cifar10", "ResNet18", SGD, 0.001, 0.25), TEST, columns=ENTROPY),
    *swept("CIFAR-100, ResNet18", over_rates("cifar100", "ResNet18", SGD, 0.001, 0.25), TEST, columns=ENTROPY),
)
FIGURE_11 = swept("ImageNet-1k, ResNet18", over_rates("imagenet", "ResNet18", SGD, 0.001, 0.25), TEST)
FIGURE_18 = swept("Waterbirds, Swin", over_rates("waterbirds", "Swin Transformer", PRETRAINED, 1e-7, 1e-4), WORST)
FIGURE_28 = (
    *swept(
        "Colored MNIST, ResNet50, Kron",
        over_rates("colored_mnist", "ResNet50", KRON, 1e-5, 1e-2),
        UNBIASED,
        (22.0, 91.0),  # "~22% - ~91%" (D.4)
    ),
    *swept("CIFAR-100, ResNet18, AdamW", over_rates("cifar100", "ResNet18", STANDARD, 1e-5, 1e-2), TEST),
)

RANGES = f"The paper prints neither rates nor values; five rates of a range like those of its tables are run. {USABLE}."
DIFFERS_10 = (
    f"{RANGES} The share of attributions on the background is left out, which needs the weights of a segmentation: "
    "`unspur analyze RUN --foreground deeplabv3` measures it."
)
DIFFERS_28 = (
    f"{RANGES} Of the accuracy with Kron it says about 22 to 91 %. Not printed either, and here: AdamW's weight decay "
    "of 0.01 and 5,000 validation images, by which the best epoch is kept (keep=best); ResNet-18 and 50 epochs."
    f"{left_open('Colored MNIST')}"
)

TABLES = (
    Table("large_lr", "figure10", "CIFAR-10 and CIFAR-100 over rates", FIGURE_10, QUICK, DIFFERS_10),
    Table("large_lr", "figure11", "ImageNet-1k over rates", tuple(FIGURE_11), QUICK, RANGES),
    Table(
        "large_lr", "figure18", "Waterbirds over rates", tuple(FIGURE_18), QUICK,
        f"{RANGES} The figure does not name its network; Swin is trained as on CelebA, with PyTorch's weight decay.",
    ),
    Table("large_lr", "figure28", "Other optimisers and schedules over rates", FIGURE_28, QUICK, DIFFERS_28),
)  # fmt: skip
