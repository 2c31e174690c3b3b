"""The layers of ARCHITECTURE.md hold: a module imports only from layers above its own, and never in a cycle."""

import ast
from pathlib import Path

import pytest

import unspur

ROOT = Path(unspur.__file__).parent

LAYERS = [
    {"errors", "version"},
    {"core"},
    {"data", "metrics"},
    {"models"},
    {"saliency", "train", "theory"},
    {"parts"},
    {"methods", "evaluation"},
    {"runs"},
    {"papers", "report"},
    {"practice"},
    {"cli"},
]
DEPTH = {name: depth for depth, names in enumerate(LAYERS) for name in names}
MODULES = [path for path in sorted(ROOT.rglob("*.py")) if path.name not in ("__init__.py", "__main__.py")]


def imports(path: Path) -> set[str]:
    """The modules of unspur that a file imports, anywhere in it, as dotted names."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "unspur":
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name.split(".")[0] == "unspur"}
    return found


def part(module: str) -> str:
    return module.split(".")[1] if "." in module else "unspur"


def dotted(path: Path) -> str:
    return ".".join(["unspur", *path.relative_to(ROOT).with_suffix("").parts])


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_module_imports_only_from_layers_above_it(path):
    own = part(dotted(path))
    for module in imports(path):
        assert part(module) == own or DEPTH[part(module)] < DEPTH[own], f"{dotted(path)} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_a_module_imports_the_defining_module_not_a_package(path):
    for module in imports(path):
        assert not (ROOT / Path(*module.split(".")[1:])).is_dir(), f"{dotted(path)} imports the package {module}"


BASES = ("aligned_features", "base", "catalog", "domain_method", "facts", "held_out_method")
SHARED = {f"unspur.methods.{name}" for name in BASES}


@pytest.mark.parametrize("path", [path for path in MODULES if part(dotted(path)) == "methods"], ids=dotted)
def test_no_method_imports_another(path):
    others = {module for module in imports(path) if part(module) == "methods"} - SHARED
    assert not others or dotted(path) == "unspur.methods.catalog"


def test_there_is_no_import_cycle():
    graph = {dotted(path): imports(path) for path in MODULES}
    finished: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join([*above[above.index(module) :], module])
        if module not in finished:
            for other in graph.get(module, ()):
                visit(other, (*above, module))
            finished.add(module)

    for module in graph:
        visit(module, ())


def test_every_public_name_can_be_imported():
    for name in unspur.__all__:
        assert getattr(unspur, name) is not None


def test_a_misspelt_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'buildmodel'"):
        _ = unspur.buildmodel
