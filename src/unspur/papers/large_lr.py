"""Tables 1 and 2 of the large-learning-rate paper (arXiv:2507.17748, D.3): lowest and highest values over sweeps.

Each cell is the lowest or highest mean over seeds that a score takes as the rate, or another hyperparameter, goes
through its published range. Of each range five values are run (four by the narrow network of Table 2's small
variants), in equal ratios but for momentum.
"""

from __future__ import annotations

from typing import Literal

from unspur.papers.table import Analysed, Cell, Measure, Score, Setup, Table

# Section 4.2 and C: SGD at a constant rate, no momentum, batches of 100, until every training sample is fitted; all
# training samples are trained on.
BASE = ("erm.momentum=0", "erm.batch_size=100", "erm.until_accuracy=1", "data.val=0")
COLUMNS = ("prunability", "activation compressibility", "CSI", "class separation")
HEADS = {"prunability": "Prunability", "activation compressibility": "Act. Comp.", "CSI": "Avg. CSI"}

DIGITS = {"Colored MNIST": "colored_mnist", "Double MNIST": "double_mnist"}
OBJECTS = {"MNIST-CIFAR": "mnist_cifar", "Cor. CIFAR-10": "corrupted_cifar10"}
SYNTHETIC = {"Parity": "parity", "Moon-Star": "moon_star"}
DATA = {**DIGITS, **OBJECTS, **SYNTHETIC, "CelebA": "celeba"}
ARCHS = {
    "FCN": "fcn", "CNN": "vgg11", "ResNet18": "resnet18", "ResNet50": "resnet50",
    "Wide ResNet101-2": "wide_resnet101_2", "Swin Transformer": "swin_t",
}  # fmt: skip

# Data set, model; lowest and highest rate, accuracy, prunability, activation compressibility, CSI, class separation.
# Some lowest values of prunability are less than guessing keeps; `below_guessing` has them.
TABLE_1 = """
MNIST-CIFAR|FCN|0.001 0.01|35.247 35.369|0.93 0.94|0.191 0.215|0.108 0.136|0.13 0.143
MNIST-CIFAR|CNN|0.001 0.2|24.507 41.717|0.326 0.902|0.173 0.513|0.079 0.225|0.049 0.149
MNIST-CIFAR|ResNet18|0.001 0.25|26.233 47.513|0.311 0.737|0.294 0.343|0.225 0.371|0.115 0.255
MNIST-CIFAR|ResNet50|0.005 0.1|23.287 34.358|0.378 0.515|0.25 0.34|0.143 0.25|0.065 0.143
MNIST-CIFAR|Wide ResNet101-2|0.005 0.1|24.855 33.537|0.418 0.522|0.252 0.34|0.166 0.247|0.082 0.149
CelebA|Swin Transformer|1e-07 0.0001|40.889 48.21|0.344 0.609|0.265 0.584|0.122 0.305|0.06 0.164
Colored MNIST|FCN|0.001 0.5|72.727 76.11|0.935 0.968|0.285 0.389|0.243 0.381|0.291 0.387
Colored MNIST|CNN|0.01 0.35|88.2 91.48|0.532 0.931|0.372 0.643|0.302 0.576|0.376 0.692
Colored MNIST|ResNet18|0.001 0.25|68.343 91.543|0.252 0.771|0.381 0.527|0.38 0.63|0.212 0.635
Colored MNIST|ResNet50|0.001 0.1|55.687 86.38|0.284 0.489|0.334 0.524|0.198 0.458|0.07 0.509
Colored MNIST|Wide ResNet101-2|0.001 0.25|61.643 85.25|0.258 0.559|0.337 0.787|0.215 0.473|0.084 0.569
Moon-Star|FCN|0.01 0.75|74.315 81.156|0.954 0.971|0.375 0.457|0.257 0.34|0.2 0.326
Cor. CIFAR-10|FCN|0.0001 0.005|46.92 51.93|0.574 0.847|0.202 0.252|0.131 0.183|0.169 0.182
Cor. CIFAR-10|CNN|0.001 0.1|43.555 48.503|0.39 0.861|0.189 0.341|0.144 0.387|0.14 0.329
Cor. CIFAR-10|ResNet18|0.001 0.5|35.153 47.795|0.267 0.803|0.382 0.634|0.266 0.393|0.115 0.205
Cor. CIFAR-10|ResNet50|0.001 0.1|36.3 45.52|0.391 0.556|0.334 0.475|0.203 0.304|0.081 0.134
Cor. CIFAR-10|Wide ResNet101-2|0.001 0.25|37.827 47.153|0.399 0.559|0.339 0.653|0.215 0.348|0.09 0.189
Double MNIST|FCN|0.001 0.5|69.287 72.47|0.986 1.029|0.236 0.406|0.22 0.485|0.428 0.481
Double MNIST|CNN|0.005 0.4|83.987 94.57|0.383 0.916|0.235 0.772|0.187 0.476|0.204 0.55
Double MNIST|ResNet18|0.001 0.1|85.44 95.577|0.285 0.706|0.306 0.365|0.467 0.602|0.485 0.776
Double MNIST|ResNet50|0.001 0.1|42.045 95.733|0.228 0.498|0.16 0.256|0.152 0.392|0.172 0.68
Double MNIST|Wide ResNet101-2|0.001 0.1|43.12 96.08|0.195 0.508|0.161 0.298|0.156 0.416|0.188 0.703
Parity|FCN|0.01 0.75|55.31 85.663|0.56 0.782|0.333 0.679|0.032 0.152|0.008 0.136
"""

# Data set, hyperparameter; its lowest and highest value, accuracy, prunability, CSI; all with ResNet-18.
TABLE_2 = """
Colored MNIST|Learning Rate|0.001 0.15|72.297 92.203|0.262 0.8|0.441 0.644
Colored MNIST|High LR + L2 Reg.|1e-05 0.001|92.183 94.25|0.79 0.87|0.651 0.848
Colored MNIST|Batch Size|0.01 0.3333|68.363 90.303|0.253 0.661|0.383 0.587
Colored MNIST|Momentum|0.1 0.99|68.38 91.197|0.256 0.748|0.387 0.633
Colored MNIST|L1 Regularization|1e-05 0.001|72.887 90.347|0.275 0.864|0.458 0.859
Colored MNIST|L2 Regularization|0.0001 0.05|71.727 89.687|0.263 0.76|0.432 0.873
Colored MNIST|Focal Loss|0.001 25.0|68.203 91.8|0.254 0.645|0.377 0.626
Colored MNIST|ASAM|0.01 10.0|68.723 90.977|0.256 0.522|0.38 0.508
MNIST-CIFAR|Learning Rate|0.001 0.1|24.327 47.497|0.293 0.69|0.24 0.376
MNIST-CIFAR|High LR + L2 Reg.|1e-06 0.0001|46.947 48.327|0.677 0.727|0.384 0.497
MNIST-CIFAR|Batch Size|0.01 0.3333|25.95 46.24|0.29 0.529|0.201 0.262
MNIST-CIFAR|Momentum|0.1 0.99|25.887 46.397|0.29 0.666|0.226 0.354
MNIST-CIFAR|L1 Regularization|1e-05 0.001|24.65 46.097|0.28 0.845|0.24 0.486
MNIST-CIFAR|L2 Regularization|0.0001 0.075|24.18 47.13|0.287 0.619|0.189 0.533
MNIST-CIFAR|Focal Loss|0.01 25.0|25.87 40.393|0.283 0.597|0.223 0.314
MNIST-CIFAR|ASAM|0.01 10.0|26.3 34.053|0.286 0.769|0.225 0.261
Double MNIST|Learning Rate|0.001 0.25|88.13 96.39|0.282 0.801|0.529 0.631
Double MNIST|High LR + L2 Reg.|1e-05 0.001|96.68 97.75|0.664 0.89|0.641 0.836
Double MNIST|Batch Size|0.01 0.3333|85.39 96.62|0.279 0.514|0.375 0.471
Double MNIST|Momentum|0.1 0.99|85.58 95.71|0.278 0.755|0.471 0.57
Double MNIST|L1 Regularization|1e-06 0.001|87.64 95.87|0.28 0.932|0.517 0.914
Double MNIST|L2 Regularization|0.0001 0.05|86.83 97.08|0.285 0.727|0.504 0.896
Double MNIST|Focal Loss|0.001 25.0|85.01 95.89|0.275 0.661|0.456 0.58
Double MNIST|ASAM|0.01 10.0|85.71 95.82|0.277 0.626|0.467 0.488
"""

KEYS = {
    "Learning Rate": "erm.lr", "High LR + L2 Reg.": "erm.weight_decay", "Batch Size": "erm.batch_size",
    "Momentum": "erm.momentum", "L1 Regularization": "erm.l1", "L2 Regularization": "erm.weight_decay",
    "Focal Loss": "focal", "ASAM": "erm.asam",
}  # fmt: skip
PICKS: tuple[tuple[str, Literal["lowest", "highest"]], ...] = (("min", "lowest"), ("max", "highest"))


def rates(low: float, high: float, count: int = 5) -> list[str]:
    """``count`` values from ``low`` to ``high`` in equal ratios.

    >>> rates(0.001, 0.1, 3)
    ['0.001', '0.01', '0.1']
    """
    ratio = (high / low) ** (1 / (count - 1))
    return [f"{low * ratio**number:.4g}" for number in range(count)]


def parse(text: str) -> list[tuple[str, str, list[tuple[float, float]]]]:
    """Rows of a table above: its first two columns, and the pairs of lowest and highest values."""
    rows = []
    for line in text.strip().splitlines():
        data, what, *ranges = line.split("|")
        pairs = [tuple(map(float, pair.split())) for pair in ranges]
        rows.append((data, what, [(low, high) for low, high in pairs]))
    return rows


def cells(row: str, sweep: tuple[Setup, ...], columns: dict[str, tuple[Measure, tuple[float, float]]]) -> list[Cell]:
    """The lowest and the highest value of each column of a row."""
    return [
        Cell(row, f"{column} {word}", value, None, None, measure, sweep, pick)
        for column, (measure, published) in columns.items()
        for (word, pick), value in zip(PICKS, published, strict=True)
    ]


def settings(data: str, model: str, epochs: int) -> tuple[str, ...]:
    """How a model is trained on a data set (section 4.2 and C), for at most so many epochs."""
    own = [*BASE, f"erm.epochs={epochs}"]
    if data == "CelebA":  # AdamW from ImageNet weights in batches of 16; validation images as published
        own = ["erm=adamw", "erm.batch_size=16", "erm.until_accuracy=1", f"erm.epochs={epochs}"]
        own += ["data.task=gender", "arch.weights=default"]
    if model == "CNN" and data in DIGITS:
        own += ["data.size=32"]
    if model == "FCN" and data in SYNTHETIC:
        own += ["arch.width=200", f"arch.depth={3 if data == 'Parity' else 2}"]  # section 5 and C
    if model == "FCN" and data in OBJECTS:
        own += ["arch.width=2048", "data.conflict=0.25"]
    return tuple(own)


EPOCHS = {"FCN": 100, "CNN": 30, "Swin Transformer": 10}  # at most; 50 for all others
SYNTHETIC_EPOCHS = 300  # parity at 0.01 fits its last sample after 270 (results/large-lr/parity-fcn.json)


def epochs(data: str, model: str) -> int:
    """How long a model is trained on a data set at most; the paper has no limit but 100 % of the training samples.

    >>> epochs("Parity", "FCN"), epochs("Colored MNIST", "FCN"), epochs("Colored MNIST", "ResNet18")
    (300, 100, 50)
    """
    return SYNTHETIC_EPOCHS if data in SYNTHETIC else EPOCHS.get(model, 50)


def table_1(wanted: str | None = None, more: tuple[str, ...] = ()) -> list[Cell]:
    """Table 1's cells, or those of one model, perhaps with settings of its own."""
    found = []
    for data, model, (lr, accuracy, *others) in parse(TABLE_1):
        if wanted in (None, model):
            name, own = DATA[data], (*settings(data, model, epochs(data, model)), *more)
            sweep = tuple(Setup("erm", name, ARCHS[model], own, f"erm.lr={rate}") for rate in rates(*lr))
            score = Score("test", "worst_group_accuracy") if data == "CelebA" else Score("unbiased")
            columns: dict[str, tuple[Measure, tuple[float, float]]] = {"Test Acc.": (score, accuracy)}
            for figure, published in zip(COLUMNS, others, strict=True):
                columns[HEADS.get(figure, "Class Sep.")] = (Analysed(by_group(data, figure)), published)
            found += cells(f"{data}, {model}", sweep, columns)
    return found


def by_group(data: str, figure: str) -> str:
    """The figure that a column shows of a data set: 3.2 divides accuracies, which for CelebA are of the worst group."""
    return "worst-group prunability" if data == "CelebA" and figure == "prunability" else figure


def below_guessing() -> list[tuple[str, str, float, float]]:
    """Rows whose lowest prunability is less than guessing keeps of the lowest accuracy: data set, row, both shares.

    3.2 divides the accuracy after pruning by that before, and a network that predicts one class is right on one
    sample in ten, of parity and moons one in two. Both rise with the rate, so that both lowest values are of one rate;
    of parity even the highest accuracy would not do. A worst group can be wholly wrong: CelebA is not among them.

    >>> below_guessing()[-1]
    ('MNIST-CIFAR', 'ASAM', 0.286, 0.38)
    """
    rows = [(data, what, ranges[1], ranges[2]) for text in (TABLE_1, TABLE_2) for data, what, ranges in parse(text)]
    found = []
    for data, what, (accuracy, _), (prunable, _) in rows:
        kept = (50 if data in SYNTHETIC else 10) / accuracy
        if data != "CelebA" and prunable < kept:
            found.append((data, what, prunable, round(kept, 2)))
    return found


def values(what: str, low: float, high: float) -> list[str]:
    """Five values of a hyperparameter of Table 2; batch sizes are printed as their reciprocals."""
    if what == "Batch Size":
        return [str(round(1 / float(value))) for value in rates(low, high)]
    if what == "Momentum":
        return ["0.1", "0.5", "0.9", "0.95", "0.99"]
    return rates(low, high)


def rates_of(model: str) -> dict[str, tuple[float, float]]:
    """Lowest and highest rate of each data set: of Table 2 for its ResNet-18, else of Table 1.

    >>> rates_of("ResNet18")["Colored MNIST"], rates_of("CNN")["Colored MNIST"]
    ((0.001, 0.15), (0.01, 0.35))
    """
    text, row = (TABLE_2, "Learning Rate") if model == "ResNet18" else (TABLE_1, model)
    return {data: ranges[0] for data, what, ranges in parse(text) if what == row}


# The highest of Table 1's rates at which the CNN with a quarter of its channels converges, where the highest of all
# diverges (results/large-lr).
CONVERGES = {"Colored MNIST": 0.1439, "Double MNIST": 0.1337}


def table_2(model: str, more: tuple[str, ...], epochs: int, wanted: tuple[str, ...] = tuple(DATA)) -> list[Cell]:
    """Table 2's cells for some data sets, with a model and its settings."""
    found, arch, spans = [], ARCHS[model], rates_of(model)
    for data, what, (span, accuracy, prunable, csi) in parse(TABLE_2):
        if data in wanted:
            low, high = spans[data]
            high = CONVERGES.get(data, high) if model == "CNN" else high
            size = ("data.size=32",) if model == "CNN" and data in DIGITS else ()
            own = (
                *BASE,
                f"erm.epochs={epochs}",
                *more,
                *size,
                f"erm.lr={high if what.startswith('High LR') else low:g}",
            )
            tried = values(what, *(spans[data] if what == "Learning Rate" else span))
            if model == "CNN" and what != "Learning Rate":
                del tried[1]  # the one that says least: it is next to the lowest
            swept = [f"{KEYS[what]}={value}" for value in tried]
            columns: dict[str, tuple[Measure, tuple[float, float]]] = {
                "Test Acc.": (Score("unbiased"), accuracy),
                "Prunability": (Analysed("prunability"), prunable),
                "Avg. CSI": (Analysed("CSI"), csi),
            }
            sweep = tuple(Setup("erm", DATA[data], arch, own, at) for at in swept)
            found += cells(f"{data}, {what}", sweep, columns)
    return found


LONG, SHORT = 50, 30  # epochs of Table 2 at most: ResNet-18's, and the narrow CNN's in its place
USABLE = (
    "A value is left out, and all stronger ones with it, if a seed diverges, answers all alike or fits 25 points less "
    "of the training samples than the best (the paper: of test accuracy)"
)
LIMITS = ", ".join(
    [f"{model} {limit}" for model, limit in EPOCHS.items()] + [f"parity and moons {SYNTHETIC_EPOCHS}", "others 50"]
)
LEFT_OPEN = {  # of a data set: what the paper does not say, and what is taken
    "Double MNIST": "the dim digit of Double MNIST at half the brightness of the other (data.dim)",
    "Colored MNIST": "the ten colours as far apart as they can be on black with a jitter of 0.005 (data.jitter)",
    "CelebA": "PyTorch's weight decay of 0.01 for Swin's AdamW",
}


def left_open(*data: str) -> str:
    """A sentence on what the paper leaves open of data sets, after a space, or nothing.

    >>> left_open("MNIST-CIFAR"), left_open("MNIST-CIFAR", "CelebA")
    ('', " The paper leaves open, and here is: PyTorch's weight decay of 0.01 for Swin's AdamW.")
    """
    found = [choice for name, choice in LEFT_OPEN.items() if name in data]
    return f" The paper leaves open, and here is: {', '.join(found)}." if found else ""


DIFFERS = (
    f"Five values of each range; training ends after a number of epochs ({LIMITS}) if not every sample is fitted by "
    f"then. {USABLE}.{left_open(*LEFT_OPEN)} Parity's network has three hidden layers, as section 5 says; C says two. "
    "What the lowest values of prunability of some rows cannot be is in results/notes/large-lr.md."
)
RATE = (
    "The paper does not say at which rate the other hyperparameters are varied; their lowest values agree with its "
    "lowest rate, which is used. The high rate of High LR + L2 is the highest of the row above it"
)
DIFFERS_2 = f"Five values of each range, at most {LONG} epochs. {USABLE}. {RATE}.{left_open(*DIGITS)}"
DIFFERS_NARROW = (
    "A CNN with a quarter of its channels in the place of ResNet-18, over its own five rates in Table 1; of the other "
    f"hyperparameters four values, at most {SHORT} epochs. {USABLE}. {RATE}; on Colored and Double MNIST 0.1439 and "
    "0.1337: above, it diverges on the whole training set."
)
NARROW = ("arch.width=0.25",)  # of the CNN, where a CPU must do
QUICK = ("erm.epochs=1",)
MODELS = {
    "fcn": "FCN", "cnn": "CNN", "resnet18": "ResNet18", "resnet50": "ResNet50",
    "wide_resnet101_2": "Wide ResNet101-2", "swin": "Swin Transformer",
}  # fmt: skip


def tables() -> tuple[Table, ...]:
    """Both tables whole, and in parts that can be run alone: Table 1 by model, Table 2 by data set.

    Table 1's CNN is there with a quarter of its channels as well, and in the parts of Table 2 it stands for ResNet-18.
    """
    caption = "Lowest and highest values over learning rates"
    made = [Table("large_lr", "table1", caption, tuple(table_1()), QUICK, DIFFERS)]
    for name, model in MODELS.items():
        made.append(Table("large_lr", f"table1-{name}", f"{caption}, {model}", tuple(table_1(model)), QUICK, DIFFERS))
    narrow, differs = tuple(table_1("CNN", NARROW)), f"{DIFFERS} The CNN has a quarter of its channels."
    made.append(Table("large_lr", "table1-cnn-narrow", f"{caption}, CNN", narrow, QUICK, differs))
    caption = "Lowest and highest values over hyperparameters"
    made.append(Table("large_lr", "table2", caption, tuple(table_2("ResNet18", (), LONG)), QUICK, DIFFERS_2))
    for data in ("Colored MNIST", "MNIST-CIFAR", "Double MNIST"):
        narrow = tuple(table_2("CNN", NARROW, SHORT, (data,)))
        differs = DIFFERS_NARROW + left_open(data)
        made.append(Table("large_lr", f"table2-{DATA[data]}", f"{caption}, {data}", narrow, QUICK, differs))
    return tuple(made)


TABLES = tables()
