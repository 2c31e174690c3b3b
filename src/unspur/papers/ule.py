"""ULE's Tables 1 to 4, 7 and 8 (UnLearning from Experience to Avoid Spurious Correlations), as printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unspur.papers.table import Cell, Measure, Misled, Score, Setup, Table, Trained, as_training
from unspur.papers.ule_peers import OTHERS, OTHERS_URBANCARS, QUICKER, peer, urbancars

AVERAGE, WORST = "average accuracy", "worst-group accuracy"
MEAN_GROUP, WORST_GROUP = Score("test", "mean_group_accuracy"), Score("test", "worst_group_accuracy")  # Eq. 4 and 5
AS_TRAINED = Score("test", "train_weighted_accuracy")
# Section 4: each network with the weights that it began with.
WEIGHTS = {
    "ResNet-18": ("resnet18", "IMAGENET1K_V1"),
    "ResNet-50": ("resnet50", "IMAGENET1K_V2"),
    "ViT-H-14": ("vit_h_14", "IMAGENET1K_SWAG_LINEAR_V1"),
}
GRID = "rule=worst_group"  # section 4; the rest of its grid search is the method's default
ERM = ("rule=mean", "lams=1")  # with lambda = 1 the teacher minimises cross-entropy alone
QUICK = ("epochs=10",)

OPEN = (
    "Momentum, batch size and the two strengths of L2 are not published; 0.9, 128 and 1e-4 or 1 are used. Section 4.3 "
    "takes saliency at the output of the last convolutions, and of the MLP head for the ViT; here it is at the last "
    "layer's input: the former's mean over places, and for the ViT the class token, since that head's output is the "
    "logits."
)
EQ_4 = "ULE's average is Eq. 4's, the mean over groups; those of the other methods weigh groups as in training."


def last_layer(model: str, data: str, *settings: str, at: str = "") -> Setup:
    """ULE on the last layer of a pretrained network."""
    arch, weights = WEIGHTS[model]
    return Setup("ule_last_layer", data, arch, (f"arch.weights={weights}", GRID, *settings), at, QUICK)


def erm(model: str, data: str) -> Setup:
    """The same without unlearning."""
    return last_layer(model, data, *ERM[:-1], at=ERM[-1])


def ours(row: str, setup: Setup, average: float | None, worst: tuple[float | None, float | None]) -> list[Cell]:
    """A row's average and worst-group accuracy, the latter with its published deviation."""
    return [Cell(row, AVERAGE, average, None, setup, MEAN_GROUP), Cell(row, WORST, *worst, setup, WORST_GROUP)]


NOTHING = (None, None)
Others = Mapping[str, Sequence[float | None]]
Published = Sequence[tuple[float, tuple[float, float]]]  # average, and worst group with its deviation


def pretrained(data: str, others: Others, ule: Published) -> tuple[Cell, ...]:
    """A table's other methods, ours without unlearning, and ULE with each of the three networks."""
    return (
        *(
            Cell(row, column, value, None, peer(row, data, WEIGHTS), measure)
            for row, values in others.items()
            for column, value, measure in zip((AVERAGE, WORST), values, (AS_TRAINED, WORST_GROUP), strict=True)
        ),
        *ours("ERM, last layer, ResNet-50", erm("ResNet-50", data), None, NOTHING),
        *(
            cell
            for model, (average, worst) in zip(WEIGHTS, ule, strict=True)
            for cell in ours(f"ULE, {model}", last_layer(model, data), average, worst)
        ),
    )


# Trained on, tested on; data set, settings and test set here; ERM and ULE in training, then in the test.
DIGITS = (
    ("MNIST", "MNIST", "mnist", (), "test", (99, 97), (99, 97)),
    ("MNIST-SC", "MNIST-SC", "mnist_sc", (), "mnist_sc", (100, 98), (100, 95)),
    ("MNIST-SC", "MNIST", "mnist_sc", (), "mnist", (100, 98), (85, 95)),
    ("ColoredMNIST", "ColoredMNIST", "colored_mnist", ("data.conflict=0",), "colored", (100, 100), (100, 100)),
    ("ColoredMNIST", "MNIST", "colored_mnist", ("data.conflict=0",), "mnist", (100, 100), (21, 40)),
)  # fmt: skip
EPOCHS = "erm.epochs=1"
METHODS = (("ERM", "erm", ("erm=adadelta", "erm.schedule=cosine", EPOCHS)), ("ULE", "ule", (EPOCHS,)))  # trained alike
LAMBDA = {"mnist": ("lam=0.1",), "colored_mnist": ("lam=0.02",)}  # not ULE's default; section 4: chosen for each set


def table_1() -> tuple[Cell, ...]:
    cells = []
    for trained, tested, data, settings, test, in_training, in_test in DIGITS:
        measures: tuple[tuple[str, tuple[int, int], Measure], ...]
        measures = (("train", in_training, Trained()), ("test", in_test, Score(test)))
        for column, published, measure in measures:
            for (name, method, own), value in zip(METHODS, published, strict=True):
                lam = LAMBDA.get(data, ()) if method == "ule" else ()
                setup = Setup(method, data, "cnn2", (*settings, *own, *lam))
                cells.append(Cell(f"{trained}, tested on {tested}", f"{name} {column}", value, None, setup, measure))
    return tuple(cells)


TABLE_1 = Table(
    "ule", "table1", "A code and colours in MNIST, trained from scratch", table_1(),
    quick=("data.base=mini", "erm.epochs=3"),
    differs="The paper gives no training settings but 300 epochs. Here it is one, with those of PyTorch's MNIST "
    "example, whose network the paper has, and a rate that falls to zero: then ERM is about as right as published. One "
    "image in twelve is held out. lambda is 0.1, 0.05 and 0.02 for the three sets: the smallest of those tried that "
    "costs at most one point of accuracy on held-out images. How Eq. 1 to 3 are read is told in methods/ule.py.",
)  # fmt: skip

LAMBDAS = tuple(step / 10 for step in range(1, 10))  # section 4: steps of 0.1; of the ends one ignores the labels
PROTOCOL = ("erm=adadelta", "erm.schedule=cosine", "erm.epochs=10")


def table_1_paper() -> tuple[Cell, ...]:
    """Table 1 by section 3 and 4: both terms brought to the same size, lambda on the grid, a row for each of them.

    The paper takes the lambda with the best worst group of validation data. Digits whose shortcut never fails have no
    such groups, so that a choice would be one of training accuracy or of the test set: all values are shown.
    """
    cells = []
    for trained, tested, data, settings, test, in_training, in_test in DIGITS:
        setups = {"ERM": Setup("erm", data, "cnn2", (*settings, *PROTOCOL))}
        for lam in LAMBDAS:
            own = (*PROTOCOL, "scale=first", f"lam={lam}")
            setups[f"ULE, lambda {lam}"] = Setup("ule", data, "cnn2", (*settings, *own))
        for name, setup in setups.items():
            row, place = f"{trained}, tested on {tested}, {name}", int(setup.method == "ule")
            for column, published, measure in (("train", in_training, Trained()), ("test", in_test, Score(test))):
                cells.append(Cell(row, column, published[place], None, setup, measure))
    return tuple(cells)


TABLE_1_PAPER = Table(
    "ule", "table1-paper", "A code and colours in MNIST, by the paper's own protocol", table_1_paper(),
    quick=("data.base=mini", "erm.epochs=1"),
    differs="Ten epochs where the paper has 300 (--set erm.epochs=300). The terms of Eq. 3 are brought to the same "
    "size once, by the first batch (section 3: \"normalised to the same order of magnitude\"; --set scale=equal "
    "--only ROW does it in every batch), and lambda goes through section 4's grid. Which of its values the paper's "
    "Table 1 has is not said, and neither are optimiser, rate and batch size: those of PyTorch's MNIST example are "
    "used. Table 1 itself (ule/table1) has the terms as they are, with the lambda that costs at most one point on "
    "held-out images.",
)  # fmt: skip

TABLE_2 = Table(
    "ule", "table2", "Waterbirds, pretrained networks",
    (
        *pretrained(
            "waterbirds",
            {
                "ERM, ResNet-50": (97.3, 60.0), "EE, ViT-H-14": (95.2, 90.1),
                "GroupDRO (group labels), ResNet-50": (97.4, 86.0), "LfF (group labels), ResNet-50": (91.2, 78.0),
                "EIIL (group labels), ResNet-50": (96.9, 78.7), "JTT (group labels), ResNet-50": (93.3, 86.7),
                "SSA (group labels), ResNet-50": (92.2, 89.0),
            },
            ((88.1, (87.7, 0.01)), (89.6, (89.0, 0.02)), (94.2, (93.6, 0.00))),
        ),
        *ours("ULE with L1 (4.3.3), ResNet-50", last_layer("ResNet-50", "waterbirds", at="distance=l1"), 89.0,
              (87.3, None)),
    ),
    quick=(), differs=f"{OTHERS} {OPEN} {EQ_4}",
)  # fmt: skip

SCRATCH = ("erm=sgd", "erm.lr=0.01", "erm.weight_decay=1e-4", "erm.batch_size=128", "erm.epochs=300")
TABLE_3_PUBLISHED = {
    "ERM": (82.2, 6.4, 23.5, 5.0), "CB": (77.4, 7.8, 28.4, 4.7), "EIIL": (51.1, 3.2, 45.5, 3.2),
    "JTT": (85.7, 0.4, 15.7, 1.6), "Spare": (59.5, 4.9, 50.6, 1.3), "SSA": (62.1, 8.2, 47.8, 1.7),
    "DFR": (63.8, 1.1, 50.8, 1.8), "Dispel": (65.2, 1.6, 51.9, 1.2), "GB": (64.3, 2.1, 50.6, 1.1),
    "GroupDRO": (65.1, 1.2, 50.7, 0.7), "ULE": (62.8, 1.4, 50.7, 0.9),
}  # fmt: skip


TABLE_3_METHODS = {
    "ERM": "erm", "ULE": "ule", "DFR": "dfr", "Dispel": "dispel", "CB": "class_balanced", "GB": "group_balanced",
    "GroupDRO": "groupdro", "JTT": "jtt", "EIIL": "eiil", "Spare": "spare", "SSA": "ssa",
}  # fmt: skip


def from_scratch(method: str) -> Setup:
    """A method of Table 3; of two trainings the one that does not look for the bias is as long as plain training."""
    own = as_training(SCRATCH) if method in ("jtt", "eiil", "spare") else SCRATCH
    return Setup(method, "waterbirds", "resnet50", own, quick=QUICKER.get(method, ()))


def table_3() -> tuple[Cell, ...]:
    cells = []
    for row, (average, average_sd, worst, worst_sd) in TABLE_3_PUBLISHED.items():
        setup = from_scratch(TABLE_3_METHODS[row])
        cells.append(Cell(row, AVERAGE, average, average_sd, setup, MEAN_GROUP))
        cells.append(Cell(row, WORST, worst, worst_sd, setup, WORST_GROUP))
    return tuple(cells)


TABLE_3 = Table(
    "ule", "table3", "Waterbirds, ResNet-50 trained from scratch", table_3(), quick=("erm.epochs=1",),
    differs="What the paper's grid search chose is not published; SGD at rate 0.01 with weight decay 1e-4, in batches "
    "of 128, and the methods' own other settings are used. Our average is Eq. 4's, the mean over groups.",
)  # fmt: skip

TABLE_4 = Table(
    "ule", "table4", "CelebA, pretrained networks",
    pretrained(
        "celeba",
        {
            "ERM, ResNet-50": (94.8, 41.1), "GroupDRO (group labels), ResNet-50": (91.8, 88.3),
            "LfF (group labels), ResNet-50": (86.0, 70.6), "EIIL (group labels), ResNet-50": (91.9, 83.3),
            "JTT (group labels), ResNet-50": (88.0, 81.1), "SSA (group labels), ResNet-50": (92.8, 89.8),
        },
        ((85.7, (84.6, 0.02)), (87.6, (85.3, 0.01)), (88.3, (87.1, 0.00))),
    ),
    quick=(), differs=f"{OTHERS} {OPEN} {EQ_4}",
)  # fmt: skip

TABLE_7_PUBLISHED = {  # average and worst group
    "ERM": (97.6, 28.4), "GroupDRO (group labels)": (91.6, 75.2), "LfF (group labels)": (97.2, 34.0),
    "EIIL (group labels)": (95.5, 50.6), "JTT (group labels)": (95.9, 55.8), "SPARE (group labels)": (96.6, 76.9),
    "ERM, last layer": NOTHING, "ULE": (98.2, 71.6),
}  # fmt: skip


def table_7() -> tuple[Cell, ...]:
    own = {"ERM, last layer": erm("ResNet-50", "urbancars"), "ULE": last_layer("ResNet-50", "urbancars")}
    cells = []
    for row, (average, worst) in TABLE_7_PUBLISHED.items():
        setup = own.get(row) or urbancars(row)
        measure: Measure = WORST_GROUP if row in own or setup.method == "spare" else Misled("test")
        cells.append(Cell(row, AVERAGE, average, None, setup, AS_TRAINED))
        cells.append(Cell(row, WORST, worst, None, setup, measure))
    return tuple(cells)


TABLE_7 = Table(
    "ule", "table7", "UrbanCars, ResNet-50", table_7(), quick=(),
    differs=f"{OTHERS_URBANCARS} {OPEN} The average weighs groups as in training, as the paper's must: "
    "with one of eight groups at 71.6 % the mean over groups is at most 96.5 %.",
)  # fmt: skip

# Teachers in rows, students in columns: the text says that the ViT-H-14 teacher is best whatever the student is.
TABLE_8_PUBLISHED = {
    "ResNet-18": ((87.7, 0.01), (87.4, 0.01), (87.6, 0.01)),
    "ResNet-50": ((88.7, 0.02), (89.0, 0.02), (87.5, 0.01)),
    "ViT-H-14": ((91.7, 0.00), (91.9, 0.01), (93.6, 0.00)),
}


def pair(teacher: str, student: str) -> Setup:
    """Two pretrained networks; the same in both roles is Table 2's."""
    if teacher == student:
        return last_layer(teacher, "waterbirds")
    arch, weights = WEIGHTS[student]
    return last_layer(teacher, "waterbirds", f"student_weights={weights}", at=f"student={arch}")


def table_8() -> tuple[Cell, ...]:
    return tuple(
        Cell(f"teacher {teacher}", f"student {student}", *published, pair(teacher, student), WORST_GROUP)
        for teacher, row in TABLE_8_PUBLISHED.items()
        for student, published in zip(WEIGHTS, row, strict=True)
    )


TABLE_8 = Table(
    "ule", "table8", "Waterbirds, worst-group accuracy with two networks", table_8(), quick=(),
    differs=OPEN,
)  # fmt: skip

TABLES = (TABLE_1, TABLE_1_PAPER, TABLE_2, TABLE_3, TABLE_4, TABLE_7, TABLE_8)
