import json
import subprocess
import sys

import pytest

from unspur.models.torchvision_compat import import_torchvision

# In a process of its own, since whether an operator exists is a state of the whole process.
SCRIPT = """
import json, sys, traceback
import torch
from unspur.models.torchvision_compat import import_torchvision

def attempt(folder):
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    sys.path.insert(0, folder)
    try:
        module = import_torchvision()
        return {"kind": module.kind, "again": import_torchvision() is module, "declared": declared()}
    except Exception as error:
        return {"error": str(error), "declared": declared()}
    finally:
        sys.path.remove(folder)

def declared():
    return [name for name in ("nms", "qnms") if hasattr(torch.ops.torchvision, name)]

print(json.dumps({name: attempt(folder) for name, folder in json.loads(sys.argv[1]).items()}))
"""


@pytest.fixture(scope="module")
def attempts(tmp_path_factory):
    """What import_torchvision does with packages that import well, fail for their own reason, and lack operators."""
    lacking = (
        "import torchvision.early\nimport torch\n"
        "for name in ('nms', 'qnms'):\n"
        "    torch.library.register_fake(f'torchvision::{name}')(lambda dets, scores, iou_threshold: dets)\n"
        "kind = f'repaired, early part run {torchvision.early.runs()} times'\n"
    )
    early = (
        "import builtins\nimport torchvision\n"
        "builtins.early_runs = getattr(builtins, 'early_runs', 0) + 1\n"
        "runs = lambda: builtins.early_runs\n"
    )
    packages = {
        "ordinary": {"__init__": "kind = 'ordinary'\n"},
        "broken": {"__init__": "raise RuntimeError('no GPU today')\n"},
        "lacking": {"__init__": lacking, "early": early},
    }
    folders = {}
    for name, files in packages.items():
        folder = tmp_path_factory.mktemp(name)
        (folder / "torchvision").mkdir()
        for file, text in files.items():
            (folder / "torchvision" / f"{file}.py").write_text(text)
        folders[name] = str(folder)
    command = [sys.executable, "-c", SCRIPT, json.dumps(folders)]
    done = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)}, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_ordinary_installation_is_imported_and_no_operator_is_declared(attempts):
    assert attempts["ordinary"] == {"kind": "ordinary", "again": True, "declared": []}


def test_an_import_that_fails_for_another_reason_still_fails_with_it(attempts):
    assert attempts["broken"] == {"error": "no GPU today", "declared": []}


def test_missing_operators_are_declared_and_the_half_imported_package_is_imported_anew(attempts):
    # Once before the failure, and once more after it: the first, half-made submodule is not kept.
    wanted = "repaired, early part run 2 times"
    assert attempts["lacking"] == {"kind": wanted, "again": True, "declared": ["nms", "qnms"]}


def test_the_installed_torchvision_can_be_used():
    torchvision = import_torchvision()
    assert "resnet18" in torchvision.models.list_models()
    assert import_torchvision() is torchvision
