"""Facts about classes, read from their source: a listing must not wait until torch is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1]


class Outline(NamedTuple):
    """A class and what it inherits from classes of this package."""

    name: str
    summary: str  # the first line of its docstring
    constants: Mapping[str, object]  # class variables whose values are literals
    fields: Mapping[str, str]  # each dataclass field's annotation, as written; of a name for a type, what it stands for
    methods: Mapping[str, str]  # the class that each method is defined in


def outline(module: str, name: str) -> Outline:
    """The class ``name`` of ``module``.

    >>> fcn = outline("unspur.models.fcn", "FCN")
    >>> fcn.constants["name"], fcn.fields["depth"], fcn.methods["build"]
    ('fcn', 'int', 'ArchSpec')
    """
    constants: dict[str, object] = {}
    fields: dict[str, str] = {}
    methods: dict[str, str] = {}
    for where, ancestor in reversed(_ancestry(module, name)):
        for line in _classes(where)[ancestor].body:
            if isinstance(line, ast.FunctionDef):
                methods[line.name] = ancestor
            elif isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                annotation = ast.unparse(line.annotation)
                if not annotation.startswith("ClassVar"):
                    alias = _assigned(where).get(annotation)  # such as Base = Literal["mnist", "mini"]
                    fields[line.target.id] = ast.unparse(alias) if alias else annotation
                elif isinstance(line.value, ast.Constant):
                    constants[line.target.id] = line.value.value
    summary = (ast.get_docstring(_classes(module)[name]) or "").partition("\n")[0]
    return Outline(name, summary, constants, fields, methods)


def catalogue(module: str, variable: str) -> dict[str, Outline]:
    """The classes that a catalogue lists, by name and in its order.

    The catalogue may be a dict of names and classes, a dict of names and texts like "unspur.methods.erm:ERM", or made
    from a tuple of classes, each of which has its name in a class variable.

    >>> list(catalogue("unspur.models.catalog", "ARCHS"))[:3]
    ['fcn', 'small_cnn', 'cnn3']
    """
    value = _assigned(module)[variable]
    keys = (
        [str(key.value) for key in value.keys if isinstance(key, ast.Constant)] if isinstance(value, ast.Dict) else []
    )
    outlines = [outline(*reference) for reference in _references(value, module)]
    names = keys or [str(found.constants["name"]) for found in outlines]
    return dict(zip(names, outlines, strict=True))


def _references(value: ast.expr, module: str) -> Iterator[tuple[str, str]]:
    """Module and name of every class that an expression mentions, in the order of the text."""
    nodes = [node for node in ast.walk(value) if isinstance(node, ast.Name | ast.Constant)]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        if isinstance(node, ast.Constant):
            where, colon, name = str(node.value).partition(":")
            if colon:
                yield where, name
        elif found := _named(node, module):
            yield found
        elif node.id in _assigned(module):
            yield from _references(_assigned(module)[node.id], module)


def _ancestry(module: str, name: str) -> list[tuple[str, str]]:
    """The class and its ancestors in this package, in the order in which Python looks things up (C3)."""
    bases = [base for node in _classes(module)[name].bases if (base := _named(node, module))]
    queues = [*(_ancestry(*base) for base in bases), bases]
    found = [(module, name)]
    while queues := [queue for queue in queues if queue]:
        first = next(queue[0] for queue in queues if not any(queue[0] in other[1:] for other in queues))
        found.append(first)
        queues = [queue[1:] if queue[0] == first else queue for queue in queues]
    return found


def _named(node: ast.expr, module: str) -> tuple[str, str] | None:
    """Module and name of the class of this package that ``node`` names in ``module``, if it does."""
    if isinstance(node, ast.Subscript):  # a generic base, such as Planted[Images]
        return _named(node.value, module)
    if not isinstance(node, ast.Name):
        return None
    where = (module, node.id) if node.id in _classes(module) else _imported(module).get(node.id)
    return where if where and where[1] in _classes(where[0]) else None


@cache
def _parsed(module: str) -> ast.Module:
    path = PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8")) if path.is_file() else ast.Module([], [])


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in _parsed(module).body if isinstance(node, ast.ClassDef)}


@cache
def _imported(module: str) -> dict[str, tuple[str, str]]:
    """Where each name that a module imports from this package comes from."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in _parsed(module).body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{PACKAGE.name}.") and node.module
        for alias in node.names
    }


@cache
def _assigned(module: str) -> dict[str, ast.expr]:
    """The value of each variable at the top of a module."""
    found: dict[str, ast.expr] = {}
    for node in _parsed(module).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            found[node.target.id] = node.value
        elif isinstance(node, ast.Assign):
            found |= {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
    return found
