"""Every block of Python on a page is run: on few samples and for one epoch, but as it stands there."""

import dataclasses
import inspect
import re
import textwrap
from pathlib import Path

import pytest
import torch

import unspur.data.catalog
from data.photos import class_folders
from unspur.methods.jtt import JTT
from unspur.models.torchvision_compat import import_torchvision
from website.scripts import ROOT

FILES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.md")]  # methods and site as well
PAGES = sorted(str(path.relative_to(ROOT)) for path in FILES)
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
BLOCKS = [
    pytest.param(code, id=f"{page}-{number}", marks=[pytest.mark.site] if "practice.audit" in code else [])
    for page in PAGES
    for number, code in enumerate(BLOCK.findall((ROOT / page).read_text(encoding="utf-8")))
]
FEW = 120  # samples to train on


@pytest.fixture
def world(tmp_path, monkeypatch):
    """What pages take for granted: photographs, weights, an exported model; and little data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNSPUR_CACHE", str(tmp_path / "cache"))
    load = unspur.data.catalog.load

    def little(name, **options):
        data = load(name, **options)
        tests = {name: test.subset(torch.arange(60)) for name, test in data.tests.items()}
        few = torch.arange(FEW)
        return dataclasses.replace(data, train=data.train.subset(few), val=data.val.subset(few), tests=tests)

    monkeypatch.setattr(unspur.data.catalog, "load", little)
    return tmp_path


def needed(code: str, world: Path) -> None:
    """The files that a block reads."""
    if 'Path("photos")' in code and "list_folder" in code:
        class_folders(world / "photos", cat=24, dog=24)
    if "mine.pth" in code:
        torch.save(import_torchvision().models.resnet18(num_classes=2).state_dict(), "mine.pth")
    if "exported/model.onnx" in code:
        _onnx(world / "exported" / "model.onnx")


def _onnx(path: Path) -> None:
    """RGB bytes in, the mean of each of two channels out: as an exported model looks from outside."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("Cast", ["images"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["floats", "places"], ["means"], keepdims=0),
        helper.make_node("Slice", ["means", "zero", "two", "one"], ["logits"]),
    ]
    numbers = {"places": [1, 2], "zero": [0], "two": [2], "one": [1]}
    graph = helper.make_graph(
        nodes,
        "means",
        [helper.make_tensor_value_info("images", TensorProto.UINT8, ["n", 128, 128, 3])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor(name, TensorProto.INT64, [len(value)], value) for name, value in numbers.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    helper.set_model_props(model, {"labels": '["cat", "dog"]'})
    path.parent.mkdir()
    onnx.save(model, path)


@pytest.mark.parametrize("code", BLOCKS)
def test_a_block_runs_as_it_stands_on_the_page(code, world):
    needed(code, world)
    names = {"__name__": "block", "predict": lambda x: torch.stack([x.mean((1, 2, 3)), 0.5 - x[:, 0].mean((1, 2))], 1)}
    exec(compile(code.replace("epochs=6", "epochs=1"), "block", "exec"), names)


def test_the_worked_example_of_a_method_is_the_method_itself():
    (shown,) = BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    source = textwrap.dedent(inspect.getsource(JTT))
    assert shown.strip() == source.strip(), "CONTRIBUTING.md shows another JTT than methods/jtt.py."
