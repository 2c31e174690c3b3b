"""Tables of trials beside the papers' own ones."""

from __future__ import annotations

from statistics import fmean

from result_files import as_printed, made, markdown, number, over_seeds, read

DCWP_START = "python scripts/dcwp_start.py --seeds 0,1,2 --set masks.steps=1000 --set tuning.steps=300"


def no_harm() -> list[str]:
    found = read("masktune-no-harm")
    rows = [[run["seed"], number(run["erm"]), number(run["masktune"])] for run in found["runs"]]
    rows.append(["mean", *(number(fmean(run[key] for run in found["runs"])) for key in ("erm", "masktune"))])
    return [made(found), "", *markdown(["seed", "ERM", "MaskTune"], rows)]


STAGES = ("erm", "after 1", "after 2", "after 3")


def masktune_tries() -> list[str]:
    found = read("masktune-table5-tries")
    rows = [
        [f"`{run['settings'].replace('--set ', '')}`"]
        + [f"{run[stage]['biased']:.2f} / {run[stage]['original']:.2f}" for stage in STAGES]
        for run in found["runs"]
    ]
    return [made(found), "", *markdown(["settings", "ERM", "round 1", "round 2", "round 3"], rows)]


def two_squares() -> list[str]:
    found = read("masktune-two-squares")
    rows = [
        [stage, *(number(100 * scores[test]) for test in ("biased", "original"))]
        for stage, scores in found["accuracy"].items()
    ]
    return [made(found), "", *markdown(["stage", "biased", "original"], rows)]


def squares() -> list[str]:
    """MaskTune on other squares: accuracy on `biased` after each rule, and how much of the square it hides."""
    lines = read("masktune-squares")
    rules = list(dict.fromkeys(line["rule"] for line in lines))
    rows = []
    for square, seed in dict.fromkeys((line["square"], line["seed"]) for line in lines):
        own = {line["rule"]: line for line in lines if (line["square"], line["seed"]) == (square, seed)}
        before = next(iter(own.values()))["before"]["biased"]
        shown = [
            f"{100 * own[rule]['accuracy']['biased']:.1f} ({100 * own[rule]['square_hidden']:.0f} %)"
            if rule in own
            else None
            for rule in rules
        ]
        rows.append([square, seed, f"{100 * before:.1f}", *shown])
    head = ["square", "seed", "plain", *(rule if "'" in rule else f"`{rule}`" for rule in rules)]
    return ["`python scripts/masktune_squares.py`; commits are in the file.", "", *markdown(head, rows)]


def readings() -> list[str]:
    found = read("masktune-readings")
    kinds = list(dict.fromkeys((row["over"], row["reading"]) for row in found["rows"]))
    rows = []
    for kind in kinds:
        own = [row for row in found["rows"] if (row["over"], row["reading"]) == kind]
        rows.append([*kind, *(number(100 * fmean(r[key] for r in own)) for key in ("square_hidden", "image_hidden"))])
    return [made(found), "", *markdown(["mean over", "order", "square hidden", "image hidden"], rows)]


def dcwp_tries() -> list[str]:
    found = read("dcwp-table1-tries")
    keys = ("erm", "pruned", "result", "kept", "mined", "precision", "recall")
    rows = [
        [
            f"`{row['settings']}`",
            row["chosen_by"],
            row["seed"],
            *(number(row[k]) if k != "mined" else row[k] for k in keys),
        ]
        for row in found["rows"]
    ]
    headers = ["settings", "chosen by", "seed", "ERM", "pruned", "result", "kept", "mined", "precision", "recall"]
    return [made(found), "", *markdown(headers, rows)]


def dcwp_masks() -> list[str]:
    rows = [
        [line["config"]["data"]["conflict_count"] or f"{100 * line['config']['data']['conflict']:g} %"]
        + [line["start"], line["penalise"], f"{line.get('up', 80.0):g}"]
        + [number(line[key]) for key in ("kept", "val_mined_loss", "val_mined_accuracy", "val_other_accuracy")]
        for line in read("dcwp-masks")
    ]
    headers = [
        "conflicting",
        "start",
        "penalised",
        "lambda_up",
        "kept",
        "mined loss",
        "mined accuracy",
        "other accuracy",
    ]
    return [
        "`python scripts/dcwp_masks.py RUN`; commits and configurations are in the file.",
        "",
        *markdown(headers, rows),
    ]


def dcwp_start() -> list[str]:
    """Where the masks begin, on held-out images of another construction: per cent right over seeds."""
    lines = read("dcwp-start")
    rows = []
    for start in dict.fromkeys(line["start"] for line in lines):
        own = [line for line in lines if line["start"] == start]
        shares = [over_seeds([line[key] for line in own]) for key in ("erm", "pruned", "result", "kept")]
        rows.append([f"{start:g}", ", ".join(str(line["seed"]) for line in own), *shares])
    headers = ["start of theta", "seeds", "ERM", "pruned", "result", "weights kept"]
    commits = ", ".join(dict.fromkeys(line["commit"] for line in lines))
    return [f"`{DCWP_START}`; commit {commits}.", "", *markdown(headers, rows)]


def ule_protocol(name: str) -> list[str]:
    """ULE's Table 1 by the paper's own protocol, a row for each lambda; train, with the shortcut, without it."""
    found = read(name)
    cells = {(cell["row"], cell["column"]): cell["ours"] for cell in found["cells"] if cell["values"]}
    sets = {"MNIST-SC": "code", "ColoredMNIST": "colours"}

    def scores(on: str, way: str) -> str:
        places = (
            (f"{on}, tested on {on}, {way}", "train"),
            (f"{on}, tested on {on}, {way}", "test"),
            (f"{on}, tested on MNIST, {way}", "test"),
        )
        return " / ".join(number(cells[place]) for place in places if place in cells)

    ways = list(dict.fromkeys(row.split(", ", 2)[2] for row, _ in cells))
    rows = [[way, *(scores(on, way) for on in sets)] for way in ways]
    return [made(found), "", *markdown(["", *(f"{word}: train / with / without" for word in sets.values())], rows)]


def ule_trials() -> list[str]:
    """Accuracy of each trial on held-out training images; a trial's name says all of its settings."""
    trials: dict[str, dict[str, str]] = {}
    for line in read("ule-trials"):
        method, _, rest = line["trial"].partition(f" {line['data']} ")
        model = line["model"]
        label = f"{method} {rest.replace(' seed=0', '')}"
        trials.setdefault(label, {})[line["data"]] = f"{100 * model['with']:.1f} / {100 * model['without']:.1f}"
    rows = [[f"`{label}`", own.get("mnist_sc"), own.get("colored_mnist")] for label, own in trials.items()]
    command = "`python scripts/ule_trials.py [--base mnist --images 55000 --epochs 1] --only TEXT`"
    return [f"{command}; seed 0; commits are in the file.", "", *markdown(["trial", "code", "colours"], rows)]


def ule_effect() -> list[str]:
    found: dict[str, list[dict[str, float]]] = {}
    for line in read("ule-digits"):
        for stages in line["effect"].values():
            found.setdefault(line["what"], []).append(stages["result"])
    rows = [
        [
            what,
            len(own),
            f"{100 * fmean(one['flipped'] for one in own):.1f} %",
            f"{fmean(one['logit'] for one in own):.1f}",
        ]
        for what, own in sorted(found.items())
    ]
    return [
        "`python scripts/ule_digits.py`; commits are in the file.",
        "",
        *markdown(["network", "seeds", "changed", "lead lost"], rows),
    ]


def ule_last_layer() -> list[str]:
    found = read("ule-last-layer")
    keys = ("worst_group_accuracy", "mean_group_accuracy", "aligned_accuracy", "conflicting_accuracy")
    rows = [
        [name, *(f"{100 * own[key][0]:.1f} ± {100 * own[key][1]:.1f}" for key in keys)]
        for name, own in found["summary"].items()
    ]
    return [made(found), "", *markdown(["", "worst group", "mean of groups", "aligned", "conflicting"], rows)]


def large_lr_table2() -> list[str]:
    """Of each row the highest means, and the setting that the accuracy was reached at."""
    found = read("large_lr-table2-colored_mnist")
    cells = {(cell["row"], cell["column"]): cell for cell in found["cells"] if cell["values"]}
    rows = []
    for row in dict.fromkeys(row for row, _ in cells):
        best = [cells[row, f"{column} max"] for column in ("Test Acc.", "Prunability", "Avg. CSI")]
        numbers = [(number(cell["ours"], cell["ours_deviation"]), as_printed(cell["published"])) for cell in best]
        rows.append([row.partition(", ")[2], f"`{best[0]['at']}`", *(text for pair in numbers for text in pair)])
    headers = ["varied", "best at", "accuracy", "published", "prunability", "published", "CSI", "published"]
    return [made(found), "", *markdown(headers, rows)]
