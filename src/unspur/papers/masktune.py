"""MaskTune's Tables 1 to 7 (arXiv:2210.00055), with the settings of its section 3, and where that is silent of the
authors' public scripts: augmentation, validation shares, the rate of the Background Challenge, Waterbirds' epochs."""

from __future__ import annotations

from dataclasses import replace

from unspur.evaluation.scores import ScoreName
from unspur.papers.table import Abstaining, Cell, Score, Setup, Table, quoted

SGD = ("erm=sgd", "erm.weight_decay=1e-4")  # section 3: momentum 0.9 and weight decay 1e-4 everywhere


def setup(method: str, data: str, arch: str, *settings: str) -> Setup:
    return Setup(method, data, arch, (*SGD, *settings))


def cropped(area: float) -> tuple[str, ...]:
    """A part of the image, at least so much of it, resized to the whole, and every other one mirrored."""
    return f"data.augment.area={area:g}", f"data.augment.aspect={4 / 3}", "data.augment.flip=true"


CROPPED = cropped(0.7)
HAIR = ("data.task=hair", *CROPPED, "arch.weights=default")
CELEBA = (*HAIR, "erm.lr=1e-4", "erm.epochs=20", "erm.batch_size=512")
JTT = (  # on CelebA by its authors' script, the first training as the second but for one epoch
    "erm.lr=1e-5", "erm.weight_decay=0.1", "erm.epochs=1",
    "training.lr=1e-5", "training.weight_decay=0.1", "training.epochs=50", "up=50",
)  # fmt: skip
WATERBIRDS = (
    "data.release=corrected", *CROPPED, "arch.weights=default", "erm.lr=1e-4", "erm.epochs=100", "erm.batch_size=128",
)  # fmt: skip
IN9 = (
    *cropped(0.08), "arch.weights=default", "erm.lr=1e-4", "erm.epochs=100", "erm.batch_size=1024",
    "erm.schedule=step", "erm.schedule.every=30", "erm.schedule.gamma=0.1",
)  # fmt: skip
# Section 3 trains the digits for 100 epochs and halves the rate every 25; see SHORTER.
DIGITS = ("erm.lr=0.01", "erm.batch_size=128", "erm.epochs=10", "erm.schedule=step", "erm.schedule.every=25")
SELECTIVE_RATE = ("erm.lr=0.1", "erm.epochs=300", "erm.schedule=step", "erm.schedule.every=25")
SHIFTED = ("data.augment.pad=4",)
CIFAR = (*SELECTIVE_RATE, "erm.batch_size=128", "data.val=10000", "data.augment.flip=true", *SHIFTED)
SVHN = (*SELECTIVE_RATE, "erm.weight_decay=5e-4", "erm.batch_size=1024", "data.val=14651", *SHIFTED)
CATS = (
    "erm=adam", "erm.weight_decay=1e-4", "erm.lr=1e-3", "erm.batch_size=128", "erm.epochs=200",
    "erm.schedule=multistep", "erm.schedule.at=50", "erm.schedule.gamma=0.1", "data.size=64",
    "data.val=0.2", "data.augment.flip=true", "data.augment.pad=8",
)  # fmt: skip


def pair(
    row: str, made: Setup, test: str, columns: dict[str, ScoreName], values: dict[str, tuple[float, float | None]]
) -> list[Cell]:
    """A row's cells: column to score, with the published value and deviation."""
    return [Cell(row, column, *values[column], made, Score(test, field)) for column, field in columns.items()]


WORST_AVERAGE: dict[str, ScoreName] = {
    "worst-group accuracy": "worst_group_accuracy",
    "average accuracy": "accuracy",  # over test samples, as the authors' code computes it
}
HEADS = tuple(WORST_AVERAGE)

CIM = "How CIM is read is told in methods/cim.py: the paper was not at hand."
MASKED_CROPS = "stretches the masks that it makes of centre crops over the whole images"
SCHEDULE = (
    "The rate falls as the text has it, and fine-tuning is at its last value; the authors' code never steps its "
    "schedule, so that both are at the first: --set erm.schedule.gamma=1."
)
READING = (
    "Masks are of the network at the end of ERM and hide what exceeds the mean of all values of a map, as the text has "
    "it; the authors' code takes the network that is best on validation images, and the mean of positive values."
)

TABLE_1 = Table(
    "masktune", "table1", "CelebA, ResNet-50",
    (
        *quoted(
            {
                "CVaR DRO (groups in validation)": (64.4, 82.5), "LfF (groups in validation)": (77.2, 85.1),
                "JTT (groups in validation)": (81.1, 88.0),
            },
            HEADS,
        ),
        *pair("CIM (groups in validation)", setup("cim", "celeba", "resnet50", *CELEBA), "test", WORST_AVERAGE,
              {HEADS[0]: (81.3, None), HEADS[1]: (89.2, None)}),
        *pair("LfF", setup("lff", "celeba", "resnet50", *CELEBA), "test", WORST_AVERAGE,
              {HEADS[0]: (24.4, None), HEADS[1]: (85.1, None)}),
        *pair("JTT", Setup("jtt", "celeba", "resnet50", (*HAIR, *JTT)), "test", WORST_AVERAGE,
              {HEADS[0]: (40.6, None), HEADS[1]: (88.0, None)}),
        *pair("DivDis", setup("divdis", "celeba", "resnet50", *CELEBA), "test", WORST_AVERAGE,
              {HEADS[0]: (55.0, None), HEADS[1]: (90.8, None)}),
        *pair("Group DRO (groups known)", setup("groupdro", "celeba", "resnet50", *CELEBA), "test", WORST_AVERAGE,
              {HEADS[0]: (88.3, None), HEADS[1]: (91.8, None)}),
        *pair("SD (groups in validation)", setup("spectral_decoupling", "celeba", "resnet50", *CELEBA), "test",
              WORST_AVERAGE, {HEADS[0]: (83.2, 2.0), HEADS[1]: (91.6, 0.6)}),
        *pair("CVaR DRO", setup("cvar_dro", "celeba", "resnet50", *CELEBA), "test", WORST_AVERAGE,
              {HEADS[0]: (36.1, None), HEADS[1]: (82.5, None)}),
        *pair("ERM", setup("erm", "celeba", "resnet50", *CELEBA), "test", WORST_AVERAGE,
              {HEADS[0]: (47.2, None), HEADS[1]: (95.6, None)}),
        *pair("MaskTune", setup("masktune", "celeba", "resnet50", *CELEBA), "test", WORST_AVERAGE,
              {HEADS[0]: (78.0, 1.2), HEADS[1]: (91.3, 0.1)}),
    ),
    quick=("erm.epochs=1",),
    differs="What is not MaskTune is trained as ERM is, with its own defaults (JTT: as its authors' script does); "
    "what the published ones were chosen from is not known. A table cannot choose a method's settings or epoch by "
    "groups in validation: CVaR DRO, LfF and JTT chosen so stay quoted, since without the choice they are the same as "
    "in their other rows; SD and CIM are run without it. JTT's authors chose the settings of their script by such "
    "groups. Crops may be wider or higher by a third, where the authors' are only ever wider. They are of images' "
    f"middle squares, as masks are; the authors' code crops whole images, and {MASKED_CROPS}. The pretrained weights "
    f"are torchvision's; the authors' script takes timm's. {CIM} {READING}",
)  # fmt: skip

TABLE_2 = Table(
    "masktune", "table2", "Waterbirds (corrected), ResNet-50",
    (
        *pair("GroupDRO (groups known)", setup("groupdro", "waterbirds", "resnet50", *WATERBIRDS), "test",
              WORST_AVERAGE, {HEADS[0]: (89.3, 3.1), HEADS[1]: (94.4, 0.7)}),
        *pair("ERM", setup("erm", "waterbirds", "resnet50", *WATERBIRDS), "test", WORST_AVERAGE,
              {HEADS[0]: (80.8, 1.3), HEADS[1]: (94.0, 0.2)}),
        *pair("MaskTune", setup("masktune", "waterbirds", "resnet50", *WATERBIRDS), "test", WORST_AVERAGE,
              {HEADS[0]: (86.4, 1.9), HEADS[1]: (93.0, 0.7)}),
    ),
    quick=("erm.epochs=1",),
    differs="Section 3 gives no settings for Waterbirds; CelebA's rate is used, in batches of 128, for the 100 epochs "
    "of the authors' script. That weights are pretrained (torchvision's) is our choice: section 3 says so of CelebA "
    "and the Background Challenge alone, and the script takes none. The authors' code tests on centre crops, and "
    f"{MASKED_CROPS}; ours takes whole images for both. {READING}",
)  # fmt: skip

IN9_TESTS = {"Original": "original", "Mixed-same": "mixed_same", "Mixed-rand": "mixed_rand", "Only-FG": "only_fg"}


def in9(row: str, method: str, values: tuple[float | None, ...]) -> list[Cell]:
    made = setup(method, "in9", "resnet50", *IN9)
    tests = zip(IN9_TESTS.items(), values, strict=True)
    return [Cell(row, column, value, None, made, Score(test)) for (column, test), value in tests if value is not None]


TABLE_3 = Table(
    "masktune", "table3", "Background Challenge (ImageNet-9), ResNet-50",
    (
        *quoted(
            {
                "SIN": (89.2, 73.1, 63.7, None), "INSIN": (94.7, 85.9, 78.5, None),
                "INCGN": (94.2, 83.4, 80.1, None),
            },
            tuple(IN9_TESTS),
        ),
        *in9("CIM", "cim", (97.7, 89.8, 81.1, None)),
        *in9("Baseline (ERM)", "erm", (96.3, 89.8, 75.6, 85.6)),
        *in9("MaskTune", "masktune", (95.6, 91.1, 78.6, 88.1)),
    ),
    quick=("erm.epochs=1",),
    differs="Section 3 gives no learning rate for the Background Challenge; 1e-4 is that of the authors' script, whose "
    "batches are of 128, not of the text's 1,024, and which also changes colours and lighting a little. "
    "SIN, INSIN and INCGN stay quoted: they are trained on stylised images or on those of a generative network, the "
    "last two beside ImageNet's own, and nothing here makes such images. The pretrained weights, which section 3 "
    f"names, are torchvision's; the script takes none. CIM is trained as ERM is. {CIM} {SCHEDULE} {READING}",
)  # fmt: skip

# Coverage and error at each target, published: SR, SN, DG, OSP (Table 4), MaskTune with deviations (Tables 4 and 7).
SELECTIVE = {
    "CIFAR-10": (setup("masktune", "cifar10", "resnet32", *CIFAR), {
        1.0: ((99.99, 9.58), (100, 11.07), (100, 10.81), (100, 9.74), (99.99, 0.02, 8.96, 0.48)),
        0.95: ((95.2, 8.74), (94.7, 8.34), (95.1, 8.21), (95.1, 6.98), (94.86, 0.18, 6.54, 0.39)),
        0.9: ((90.5, 6.52), (89.6, 6.45), (90.1, 6.14), (90.0, 4.67), (89.73, 0.22, 4.74, 0.31)),
        0.85: (None, None, None, None, (84.46, 0.07, 3.23, 0.20)),
        0.8: (None, None, None, None, (79.03, 0.44, 2.13, 0.11)),
    }),
    "SVHN": (setup("masktune", "svhn", "resnet32", *SVHN), {
        1.0: ((99.97, 3.86), (100, 4.27), (100, 4.03), (100, 4.27), (100.0, 0.00, 3.68, 0.16)),
        0.95: ((95.1, 1.86), (95.1, 2.53), (95.0, 2.05), (95.1, 1.83), (95.19, 0.09, 1.84, 0.23)),
        0.9: ((90.0, 1.04), (90.1, 1.31), (90.0, 1.06), (90.1, 1.01), (89.55, 0.26, 0.96, 0.11)),
        0.85: (None, None, None, None, (83.72, 0.71, 0.57, 0.04)),
        0.8: (None, None, None, None, (77.81, 0.75, 0.45, 0.05)),
    }),
    "Cats vs. Dogs": (setup("masktune", "cats_vs_dogs", "resnet32", *CATS), {
        1.0: ((100, 5.72), (100, 7.36), (100, 6.16), (100, 5.93), (99.98, 0.00, 4.83, 0.17)),
        0.95: ((95.0, 3.46), (95.2, 5.1), (95.1, 4.28), (95.1, 2.97), (95.01, 0.14, 2.96, 0.15)),
        0.9: ((90.0, 2.28), (90.2, 3.3), (90.0, 2.5), (90.0, 1.74), (90.78, 0.16, 1.94, 0.18)),
        0.85: (None, None, None, None, (86.33, 0.61, 1.24, 0.21)),
        0.8: (None, None, None, None, (81.98, 0.47, 0.89, 0.20)),
    }),
}  # fmt: skip


# Of Deep Gamblers. What is bet pays at most the number of classes.
PAYOFF = {"CIFAR-10": 2.2, "SVHN": 2.2, "Cats vs. Dogs": 2.0}


def abstaining(peer: str, data: str, made: Setup, target: float) -> tuple[Setup, str]:
    """How a peer's cell is made, trained as MaskTune's first stage is, and the mode that answers in it."""
    if peer == "SR":
        return made, "softmax_response"  # of MaskTune's first stage, which is plain training
    if peer == "OSP":
        return replace(made, method="osp"), "softmax_response"
    if peer == "SN":  # a network for each coverage
        return replace(made, method="selectivenet", settings=(*made.settings, f"coverage={target:g}")), "learned"
    return replace(made, method="deep_gamblers", settings=(*made.settings, f"payoff={PAYOFF[data]:g}")), "learned"


def selective_cells(targets: tuple[float, ...], others: bool) -> tuple[Cell, ...]:
    """Rows "data set, target"; columns "method coverage" and "method error"."""
    cells = []
    for data, (made, published) in SELECTIVE.items():
        for target in targets:
            row = f"{data}, {100 * target:.0f} %"
            *peers, (coverage, coverage_sd, error, error_sd) = published[target]
            for peer, values in zip(("SR", "SN", "DG", "OSP"), peers if others else (), strict=False):
                ours, mode = abstaining(peer, data, made, target)
                for field, value in zip(("coverage", "error"), values or (), strict=False):
                    cells.append(
                        Cell(row, f"{peer} {field}", value, None, ours, Abstaining("test", mode, target, field))
                    )
            for field, value, deviation in (("coverage", coverage, coverage_sd), ("error", error, error_sd)):
                measure = Abstaining("test", "product", target, field)
                cells.append(Cell(row, f"MaskTune {field}", value, deviation, made, measure))
    return tuple(cells)


TABLE_4 = Table(
    "masktune", "table4", "Selective classification, ResNet-32", selective_cells((1.0, 0.95, 0.9), others=True),
    quick=("erm.epochs=1",),
    differs="The paper does not say what size Cats vs. Dogs is scaled to; 64 pixels are what the authors' code takes. "
    "SVHN's batches are the text's of 1,024; the authors' script has 128. Where their scripts move images by random "
    "affine maps (CIFAR-10, Cats vs. Dogs), ours shift them by up to an eighth of a side and do not turn them. SR is "
    "the first stage of MaskTune. SN, DG and OSP are trained as that is, for the paper does not say how theirs were: "
    "SN for each coverage; DG plainly for the first third of its epochs, as its authors' script does, with a payoff of "
    "2.2, of 2 for two classes; OSP with a mu of 0.49. SN selects by one sigmoid on normalised features, without the "
    f"hidden layer that its paper puts before it. {SCHEDULE} {READING}",
)  # fmt: skip
TABLE_7 = Table(
    "masktune", "table7", "Selective classification at more coverages, ResNet-32",
    selective_cells((1.0, 0.95, 0.9, 0.85, 0.8), others=False),
    quick=("erm.epochs=1",), differs=TABLE_4.differs,
)  # fmt: skip

SHORTER = (
    "Ten epochs of ERM instead of 100, all at the first rate, at which the authors' code stays, and which its "
    "fine-tuning has: --set erm.epochs=100 --set erm.schedule.gamma=1 trains as long. One image in twelve is held "
    "out, in their code one in five. Squares are drawn as the text says: --set data.draw=authors draws them as the "
    f"code does, with which Table 5 has the published shape. {READING}"
)
TWO = ("data.squares=2", *DIGITS)
TABLE_5_PUBLISHED = {
    # iterations: accumulative biased, original; non-accumulative biased, original
    1: ((24.68, 2.73), (59.93, 5.25), (28.08, 11.44), (64.38, 10.45)),
    2: ((97.01, 2.86), (98.61, 0.61), (30.69, 5.69), (62.07, 4.03)),
    3: ((98.88, 0.60), (99.00, 0.14), (24.91, 2.45), (58.76, 0.76)),
}


def table_5() -> tuple[Cell, ...]:
    cells = []
    for kind, accumulate in (("accumulative", "true"), ("non-accumulative", "false")):
        made = setup("masktune", "biased_mnist", "small_cnn", *TWO, "iterations=3", f"accumulate={accumulate}")
        for test, erm in (("biased", (18.59, 0.75)), ("original", (60.78, 0.74))):
            cells.append(Cell("ERM, no masking", f"{kind} {test}", *erm, made, Score(test, stage="erm")))
            for round_number, published in TABLE_5_PUBLISHED.items():
                value = published[(kind != "accumulative") * 2 + (test != "biased")]
                stage = f"iteration-{round_number}" if round_number < 3 else None
                cells.append(Cell(f"{round_number}", f"{kind} {test}", *value, made, Score(test, stage=stage)))
    return tuple(cells)


TABLE_5 = Table(
    "masktune", "table5", "Two squares: rounds of masking", table_5(),
    quick=("data.base=mini",), differs=SHORTER,
)  # fmt: skip


NO_VALUE = (None, None)
TABLE_6_ROWS: dict[
    str, tuple[str, tuple[str, ...], tuple[float | None, float | None], tuple[float | None, float | None]]
]
TABLE_6_ROWS = {
    # method, settings, published on biased and on original with deviations
    "ERM": ("erm", (), NO_VALUE, NO_VALUE),
    "random masking, same area": ("randmask", (), NO_VALUE, NO_VALUE),
    "random masking, windows": ("randmask", ("area=window",), (59.06, 9.25), (91.02, 1.87)),
    "MaskTune": ("masktune", (), (98.26, 0.27), (98.46, 0.21)),
}


def table_6() -> tuple[Cell, ...]:
    return tuple(
        Cell(row, test, *published, setup(method, "biased_mnist", "small_cnn", *DIGITS, *more), Score(test))
        for row, (method, more, biased, original) in TABLE_6_ROWS.items()
        for test, published in (("biased", biased), ("original", original))
    )


TABLE_6 = Table(
    "masktune", "table6", "One square: MaskTune and random masking", table_6(),
    quick=("data.base=mini",),
    differs=SHORTER + " ERM and masking of the same area are Figure 2's, which prints no numbers.",
)  # fmt: skip

TABLES = (TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLE_5, TABLE_6, TABLE_7)
