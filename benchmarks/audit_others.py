"""cleanlab's and deepchecks' own checks of images and labels, run in environments that are made for them.

What counts as found: cleanlab's Datalab reports a property whose score is below its own threshold (0.3); deepchecks'
PropertyLabelCorrelation reports a property above its own default condition (a predictive power of 0.2).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from unspur.data.files.fetch import cache_folder

TORCH = [f"{name}=={version(name)}" for name in ("torch", "torchvision")]  # unpinned, it may bring CUDA's packages
OTHERS = {  # packages of each environment; deepchecks does not work with newer numpy, scikit-learn and pandas
    "cleanlab": ["cleanlab[image]"],
    "deepchecks": ["numpy<2", "scikit-learn<1.6", "pandas<3", "deepchecks[vision]", *TORCH, "setuptools<81"],
}
SCRIPTS = {
    "cleanlab": """
import sys, json, pathlib
from datasets import Dataset, Features, Image, Value
from cleanlab import Datalab
root = pathlib.Path(sys.argv[1])
files = sorted(root.glob("*/*"))
data = Dataset.from_dict({"image": [str(f) for f in files], "label": [f.parent.name for f in files]})
data = data.cast_column("image", Image())
lab = Datalab(data=data, label_name="label", image_key="image")
names = ("dark", "light", "blurry", "low_information", "odd_aspect_ratio", "grayscale", "odd_size")
lab.find_issues(issue_types={"image_issue_types": {name: {} for name in names}, "spurious_correlations": {}})
info = lab.get_info("spurious_correlations")
scores = info["correlations_df"]
level = info["threshold"]
print(json.dumps({row.property: float(row.score) for row in scores.itertuples()} | {"level": float(level)}))
""",
    "deepchecks": """
import sys, json, pathlib, numpy, torch
try:
    import torchvision
except RuntimeError:  # a build for CUDA beside a torch without it: what deepchecks uses needs no operator of it
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    for operator in ("nms", "qnms"):
        torch.library.define(f"torchvision::{operator}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
from PIL import Image
from deepchecks.vision.vision_data import VisionData
from deepchecks.vision.checks import PropertyLabelCorrelation
root = pathlib.Path(sys.argv[1])
files = sorted(root.glob("*/*"))
names = sorted({f.parent.name for f in files})
def batches():
    for start in range(0, len(files), 64):
        part = files[start : start + 64]
        yield {"images": [numpy.asarray(Image.open(f).convert("RGB")) for f in part],
               "labels": [names.index(f.parent.name) for f in part]}
# Without label_map every label is None to this check, and every score 0.
data = VisionData(batches(), task_type="classification", label_map=dict(enumerate(names)), reshuffle_data=False)
value = PropertyLabelCorrelation(n_samples=None).run(data).value
print(json.dumps({key: float(number) for key, number in dict(value).items()} | {"level": 0.2}))
""",
}


def python_of(tool: str) -> Path:
    return cache_folder() / "benchmark-environments" / tool / "bin" / "python"


def environment(tool: str) -> str | None:
    """Make the environment of a tool if it is not there; what went wrong, or None."""
    python = python_of(tool)
    ready = python.parent.parent / ".installed"
    if ready.exists():
        return None
    subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
    made = subprocess.run([python, "-m", "pip", "install", "--quiet", *OTHERS[tool]], capture_output=True, text=True)
    if made.returncode:
        return made.stderr.strip().splitlines()[-1][:200]
    ready.touch()
    return None


def look(tool: str, folder: Path) -> dict[str, object]:
    """The tool's scores of each property, whether it reports any, and its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    made = subprocess.run([python_of(tool), "-c", SCRIPTS[tool], str(folder)], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)
    if made.returncode:
        return {"problem": made.stderr.strip().splitlines()[-1][:200], "processor": processor}
    scores = json.loads(made.stdout.strip().splitlines()[-1])
    level = scores.pop("level")
    reported = [key for key, score in scores.items() if (score < level if tool == "cleanlab" else score > level)]
    return {"found": bool(reported), "reported": reported, "scores": scores, "processor": processor}
