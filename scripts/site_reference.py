"""Reference pages, generated from the code: methods, data sets, architectures, metrics, files, the Python API."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import pkgutil
import textwrap
import tokenize
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from site_commands import write_commands
from site_pages import ROOT, menu, relinked

import unspur
import unspur.metrics
from unspur.cli.listing import arch_rows, data_rows, method_rows
from unspur.core.options import options
from unspur.data.catalog import DATASETS
from unspur.methods.catalog import METHODS
from unspur.methods.shown import shown
from unspur.models.catalog import ARCHS

COMPARED = ROOT / "results" / "compare-colored_mnist-mini.json"
FILES = {  # each file that is stored, and the structures that it is made of
    "`result.json`, of a run": ["runs.result.Result", "runs.result.StageBlock", "methods.facts.BaselineBlock"],
    "The scores of a test set, in `result.json`": [
        "evaluation.scores.TestScores",
        "evaluation.scores.OverGroups",
        "evaluation.scores.Share",
    ],
    "`data.json`, of a run": ["runs.folder.DataNames"],
    "`findings.json`, of an audit": [
        "practice.audit.findings.AuditJSON",
        "practice.audit.findings.FindingJSON",
        "practice.audit.findings.RelianceJSON",
        "practice.audit.findings.TestedJSON",
        "practice.audit.evidence.EvidenceJSON",
    ],
    "`repair.json`, of a repair": [
        "practice.repair.state.RepairJSON",
        "practice.repair.state.TriedJSON",
        "practice.repair.state.ScoresJSON",
        "practice.repair.state.DifferenceJSON",
        "practice.repair.state.BaselineJSON",
        "practice.repair.state.RelianceChange",
    ],
    "The rows of `predict --out FILE.jsonl`": ["practice.predict.rows.RowJSON", "practice.predict.rows.GuessJSON"],
    "`config.json`, of an exported model": [
        "practice.export.layout.ExportedConfig",
        "practice.export.layout.Origin",
    ],
    "What `doctor --json` prints": [
        "practice.doctor.Diagnosis",
        "practice.doctor.Package",
        "practice.doctor.Extra",
        "practice.doctor.Device",
        "practice.doctor.Cache",
        "practice.doctor.Files",
    ],
}


def write_reference(out: Path) -> None:
    """All of them below ``out`` / reference."""
    reference = out / "reference"
    write_commands(reference / "commands")
    _write_methods(reference / "methods", out)
    pages = {
        "datasets": _specs("Data sets", "data.", data_rows(), {name: kind() for name, kind in DATASETS.items()}),
        "architectures": _specs("Architectures", "arch.", arch_rows(), {name: kind() for name, kind in ARCHS.items()})
        + "\nEvery classifier of torchvision has its own name, such as `resnet18` or `swin_t`.\n",
        "metric-functions": _metric_functions(),
        "files": _files(),
        "python": _python(),
    }
    for name, text in pages.items():
        (reference / f"{name}.md").write_text(text, encoding="utf-8")
    order = ["commands/index", "methods/index", "datasets", "architectures", "metrics", "metric-functions", "runs"]
    lead = "Generated from the code and its comments, but for the pages on metrics, runs, terms and security."
    text = menu("Reference", [*order, "files", "python", "glossary", "security"], lead, depth=1)
    (reference / "index.md").write_text(text, encoding="utf-8")


def _write_methods(out: Path, site: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    header, *rows = method_rows()
    compared = _compared()
    for row in rows:
        facts = dict(zip(header, row, strict=True))
        (out / f"{row[0]}.md").write_text(_method(facts, compared, site), encoding="utf-8")
    listed = [(f"[{name}]({name}.md)", groups, cost, what) for name, groups, _, cost, _, _, what in rows]
    text = _table(("method", "group labels", "cost", "what it does"), listed)
    text += "\n\nCost is in units of plain training. *Group labels*: whether they are needed in training, in the "
    text += "validation data alone, or not at all."
    (out / "index.md").write_text(menu("Methods", [row[0] for row in rows], text), encoding="utf-8")


def _compared() -> dict[str, float]:
    """Each method's mean over groups on coloured digits, in per cent, chosen without group labels."""
    rows = json.loads(COMPARED.read_text(encoding="utf-8"))["datasets"][0]["rows"]
    return {row["method"]: 100 * row["mean"]["none"]["mean"] for row in rows if row["mean"]["none"]["mean"] is not None}


def _method(facts: dict[str, str], compared: dict[str, float], site: Path) -> str:
    """The page of one method: what people wrote in docs/methods, between it what the code and the results say."""
    name = facts["method"]
    kind = METHODS[name]
    file = f"docs/methods/{name}.md"
    written = relinked((ROOT / file).read_text(encoding="utf-8"), file, f"reference/methods/{name}", site)
    idea, *parts = written.split("\n## ")
    section = {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}
    reading = "\n".join(inspect.cleandoc(kind.__doc__ or "").splitlines()[1:]).strip()
    needs = {"needed": "needed in training", "validation": "needed in the validation data", "no": "not needed"}
    about = [
        ("group labels", needs[facts["groups"]]),
        ("network", facts["network"]),
        ("cost", f"{facts['cost']}, in units of plain training"),
        ("in Python", f"`{kind.__module__}.{kind.__name__}`"),
    ]
    text = [
        f"# {name}",
        f"*{facts['what it does']}*",
        idea.strip(),
        f"```sh\nunspur train {name} DATASET\n```",
        f"## Algorithm\n\n{section['Algorithm']}",
        f"The code that does it:\n\n```python\n{_algorithm(kind)}```",
        f"## Formula\n\n{section['Formula']}",
        f"## How it is read here\n\n{reading}" if reading else "",
        "## Settings\n\nEach is a field of the class and a key for `--set`.\n\n" + _settings(kind(), ""),
        "## Cost and needs\n\n" + _table(("", ""), about),
        "## Shown to repair here\n\n" + _shown(name, compared),
        f"## Where it fails\n\n{section['Where it fails']}",
        f"## Citation\n\n{section['Citation']}",
    ]
    return "\n\n".join(part for part in text if part) + "\n"


def _algorithm(kind: type) -> str:
    """The method's own part of the code: `_fit`, or what stands in its place where a base class has that."""
    own = next(name for name in ("_fit", "penalty", "objective") if name in vars(kind))
    return textwrap.dedent(inspect.getsource(vars(kind)[own]))


def _shown(name: str, compared: dict[str, float]) -> str:
    entries = [
        (
            entry["shortcut"],
            entry["images"],
            f"{entry['before']} %",
            f"**{entry['after']} %**" if entry["after"] > entry["before"] else f"{entry['after']} %",
            str(entry["seeds"]),
        )
        for entry in shown().get(name, [])
    ]
    text = [_table(("shortcut", "images", "without", "with", "seeds"), entries)] if entries else []
    text.append(
        "Per cent right where the shortcut misleads; [the tables](../../results/tables.md) say how it was measured."
        if entries
        else "No table of this repository measures it on its own."
    )
    if name in compared and name != "erm":
        text.append(
            f"In the comparison of all methods on coloured digits, one seed: {compared[name]:.1f} % over groups, plain "
            f"training {compared['erm']:.1f} % ([compared](../../results/compared.md))."
        )
    return "\n\n".join(text)


def _specs(title: str, prefix: str, rows: Any, specs: dict[str, Any]) -> str:
    header, *body = rows
    linked = [(f"[`{row[0]}`](#{row[0].replace('_', '-')})", *row[1:]) for row in body]
    text = [f"# {title}", _table(header, linked)]
    for name, spec in specs.items():
        text += [f"## {name}", inspect.cleandoc(type(spec).__doc__ or "")]
        if hasattr(spec, "about"):
            about = {"From": spec.about.citation, "Licence": spec.about.licence, "Get it": spec.about.get}
            text.append("\n".join(f"- **{heading}**: {words}" for heading, words in about.items()))
        text.append(_settings(spec, prefix))
    return "\n\n".join(text) + "\n"


def _settings(spec: Any, prefix: str) -> str:
    rows = [(f"`{prefix}{key}`", f"`{default}`", comment) for key, default, comment in options(spec)]
    return _table(("setting", "default", "what it is"), rows) if rows else "It has no settings."


def _metric_functions() -> str:
    text = [
        "# Metrics, as functions",
        "Pure functions of tensors, each with its formula and an example that is run as a test.",
    ]
    for module in pkgutil.iter_modules(unspur.metrics.__path__):
        name = f"unspur.metrics.{module.name}"
        text.append(f"## {module.name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n```")
    return "\n\n".join(text) + "\n"


def _python() -> str:
    text = ["# Python", "What `import unspur` gives. A name is imported when it is first used, torch with it."]
    groups: dict[str, list[str]] = {"Functions": [], "Classes": [], "Methods": []}
    for name in sorted(unspur.__all__, key=str.lower):
        if name == "__version__":
            continue
        value = getattr(unspur, name)
        if isinstance(value, types.FunctionType):
            groups["Functions"].append(f".. autofunction:: {value.__module__}.{name}")
        elif value.__module__.startswith("unspur.methods.") and name != "Fit":
            groups["Methods"].append(f"- [`unspur.{name}`](methods/{value.name}.md)")
        else:
            groups["Classes"].append(f".. autoclass:: {value.__module__}.{name}\n   :members:")
    for title, entries in groups.items():
        body = "\n\n".join(entries) if title != "Methods" else "\n".join(entries)
        text.append(f"## {title}\n\n" + (body if title == "Methods" else f"```{{eval-rst}}\n{body}\n```"))
    return "\n\n".join(text) + "\n"


def _files() -> str:
    text = [
        "# Files and their fields",
        "What cannot be known is `null`, never 0. [A run is a folder](runs.md) says which file is what.",
    ]
    for title, names in FILES.items():
        text.append(f"## {title}")
        for name in names:
            module, _, kind = name.rpartition(".")
            structure = getattr(importlib.import_module(f"unspur.{module}"), kind)
            text += [f"**{kind}**: {(inspect.getdoc(structure) or '').partition(chr(10))[0]}", _fields(structure)]
    return "\n\n".join(text) + "\n"


def _fields(structure: type) -> str:
    """A row for each field of a typed dict: its type as written, and the comment behind it."""
    source = textwrap.dedent(inspect.getsource(structure))
    comments = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and ":" in token.line:
            comments[token.line.split(":")[0].strip()] = token.string.lstrip("# ")
    rows = []
    for line in source.splitlines():
        name, colon, rest = line.strip().partition(": ")
        if colon and name.isidentifier() and name in structure.__annotations__:
            kind = rest.split("  #")[0].strip()
            optional = kind.startswith("NotRequired[")
            shown_kind = kind.removeprefix("NotRequired[").removesuffix("]") if optional else kind
            meaning = ", ".join(filter(None, [comments.get(name), "*may be absent*" if optional else ""]))
            rows.append((f"`{name}`", f"`{shown_kind}`", meaning))
    return _table(("field", "type", "meaning"), rows)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(header), *(list(row) for row in rows)]
    cells = ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines]
    return "\n".join([cells[0], "| " + " | ".join("---" for _ in lines[0]) + " |", *cells[1:]])
