"""Do some thirty tiny runs over all methods, stages, thresholds, schedules, devices and a resume; write their bits.

    python scripts/lock_figures.py before.json                       # with the code that is installed
    PYTHONPATH=old/src python scripts/lock_figures.py before.json    # with that of another checkout
    python scripts/lock_figures.py after.json --against before.json  # exit code 1 where any bit differs

A redesign that changes no figure gives the same file. Everything goes through the command line, so that one script
serves every version; runs are of the embedded digits and of pictures that are drawn here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from safetensors.numpy import load_file

DIGITS = ["biased_mnist", "--set", "data.base=mini", "--set", "data.val=9600"]  # 400 training samples are left
CODES = ["mnist_sc", "--set", "data.base=mini", "--set", "data.val=9600"]
PARITY = ["parity", "--set", "data.train=500"]
PICTURES = ["folder", "--set", "data.root=pictures", "--set", "data.size=32"]
MASKS = ["masks.steps=6", "masks.batch_size=32"]
TUNING = ["tuning.steps=6", "tuning.batch_size=32", "tuning.every=2"]
MINING = ["mining.training.epochs=2", "mining.training.batch_size=32"]
HEADS = ["lrs=0.1,0.01", "l2s=0.001,1", "epochs=4", "every=2"]

# name: method, data, architecture, settings, further options
RUNS: dict[str, tuple[str, list[str], str, list[str], list[str]]] = {
    "erm sgd step": ("erm", DIGITS, "small_cnn", ["erm.epochs=3", "erm.schedule=step", "erm.schedule.every=1"], []),
    "erm adam cosine": ("erm", DIGITS, "cnn2", ["erm=adam", "erm.epochs=2", "erm.schedule=cosine"], []),
    "erm adamw wsd": ("erm", DIGITS, "cnn3", ["erm=adamw", "erm.epochs=2", "erm.schedule=wsd"], []),
    "erm adadelta multistep": (
        "erm", DIGITS, "cnn2", ["erm=adadelta", "erm.epochs=2", "erm.schedule=multistep", "erm.schedule.at=1"], [],
    ),
    "erm drop l1 focal": (
        "erm", DIGITS, "small_cnn",
        ["focal=2", "erm.l1=1e-5", "erm.epochs=2", "erm.schedule=drop", "erm.schedule.after=3"], [],
    ),
    "erm kron": ("erm", PARITY, "fcn", ["erm=kron", "erm.epochs=1", "arch.width=16"], []),
    "erm asam stop": ("erm", DIGITS, "small_cnn", ["erm.asam=0.5", "erm.epochs=9", "erm.until_accuracy=0.9"], []),
    "erm parity follow": ("erm", PARITY, "fcn", ["erm.epochs=2"], ["--follow", "0"]),
    "erm bf16": ("erm", DIGITS, "small_cnn", ["precision=bf16", "erm.epochs=2"], []),
    "erm folder augment": ("erm", [*PICTURES, "--set", "data.augment.flip=true"], "resnet18", ["erm.epochs=2"], []),
    "erm two devices": ("erm", DIGITS, "cnn2", ["erm.epochs=2"], ["--devices", "2"]),
    "masktune mean_std": ("masktune", DIGITS, "small_cnn", ["erm.epochs=2", "iterations=2"], []),
    "masktune dataset_mean": ("masktune", DIGITS, "small_cnn", ["erm.epochs=2", "threshold=dataset_mean"], []),
    "masktune top_k layercam": (
        "masktune", DIGITS, "small_cnn",
        ["erm.epochs=2", "threshold=top_k", "saliency=layercam", "iterations=2", "accumulate=false"], [],
    ),
    "masktune soft gradient": ("masktune", DIGITS, "cnn2", ["erm.epochs=2", "threshold=soft", "saliency=gradient"], []),
    "masktune folder": ("masktune", PICTURES, "small_cnn", ["erm.epochs=2", "erm.schedule=cosine"], []),
    "masktune two devices": ("masktune", DIGITS, "small_cnn", ["erm.epochs=2"], ["--devices", "2"]),
    "randmask same_area": ("randmask", DIGITS, "small_cnn", ["erm.epochs=2"], []),
    "randmask window": ("randmask", DIGITS, "small_cnn", ["erm.epochs=2", "area=window"], []),
    "dcwp gce": ("dcwp", DIGITS, "small_cnn", ["erm.epochs=2", *MINING, *MASKS, *TUNING], []),
    "dcwp erm miner": (
        "dcwp", DIGITS, "cnn2", ["mining=erm", "prune=false", "erm.epochs=2", *MINING, *TUNING, "tuning.optimiser=sgd"],
        [],
    ),
    "dcwp ensemble bf16": (
        "dcwp", DIGITS, "small_cnn",
        ["mining=ensemble", "mining.score=0.3", "precision=bf16", "erm.epochs=2", "reading=group", *MINING, *MASKS,
         *TUNING], [],
    ),
    "mrm": ("mrm", DIGITS, "cnn2", ["erm=sgd", "erm.epochs=2", *MASKS], []),
    "mrm debias": ("mrm", DIGITS, "small_cnn", ["debias=true", "erm.epochs=2", "epochs_again=1", *MINING, *MASKS], []),
    "ule saliency": ("ule", CODES, "cnn2", ["erm.epochs=2"], []),
    "ule layer": ("ule", DIGITS, "small_cnn", ["erm=sgd", "erm.epochs=2", "layer=net.features", "scale=equal"], []),
    "ule activations": (
        "ule", CODES, "cnn2", ["erm.epochs=2", "compare=activations", "student=cnn3", "erm.until_accuracy=0.6"], [],
    ),
    "ule_last_layer": ("ule_last_layer", DIGITS, "small_cnn", ["lams=0.2,1", *HEADS], []),
    "ule_last_layer student": ("ule_last_layer", DIGITS, "small_cnn", ["lams=0.5", "student=cnn2", *HEADS], []),
    "balanced_last_layer": ("balanced_last_layer", DIGITS, "small_cnn", HEADS, []),
    "large_lr": ("large_lr", DIGITS, "cnn2", ["erm.epochs=3", "probe.steps=4", "probe.tries=3"], []),
}  # fmt: skip
RESUMED = ("masktune mean_std", "dcwp gce", "ule saliency", "large_lr")  # done once more, killed on the way
BLOCKS = ("status", "tests", "stages", "facts")
ADDED = ("only_class", "artifacts/logits.safetensors")  # a score and a file that earlier versions did not have
MOVED = ("warnings", "stage")  # facts of version 0.1 that have a place of their own in result.json since


def draw_pictures(root: Path) -> None:
    """Ninety small photographs, as far as a generator of random numbers can take them."""
    random = np.random.default_rng(0)
    for number in range(90):
        label = number % 2
        pixels = random.integers(0, 120, (40, 48, 3), dtype=np.uint8)
        pixels[8:32, 8:32, label] += 100
        if random.random() < 0.9:
            pixels[:6, :6] = 255 * label
        folder = root / ("cat", "dog")[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / f"{number:03}.png")


def command(name: str, out: str) -> list[str]:
    method, data, arch, settings, more = RUNS[name]
    sets = [word for setting in settings for word in ("--set", setting)]
    return [
        sys.executable,
        "-m",
        "unspur",
        "train",
        method,
        *data,
        "--arch",
        arch,
        *sets,
        *more,
        "--out",
        out,
        "--json",
    ]


def bits(folder: Path) -> dict[str, Any]:
    """Hashes of every stored tensor file, and the blocks of the result."""
    files = sorted(path for path in folder.rglob("*.safetensors") if "checkpoints" not in path.parts)
    result = json.loads((folder / "result.json").read_text())
    for name in MOVED:
        result.get("facts", {}).pop(name, None)
    return {
        "weights": {str(path.relative_to(folder)): _hash(path) for path in files},
        **{block: result.get(block) for block in BLOCKS},
    }


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    for name, tensor in sorted(load_file(path).items()):
        digest.update(f"{name} {tensor.dtype} {tensor.shape}".encode() + np.ascontiguousarray(tensor).tobytes())
    return digest.hexdigest()[:16]


def run(name: str, work: Path) -> dict[str, Any]:
    """One run from beginning to end."""
    out = f"runs/{name}".replace(" ", "-")
    done = subprocess.run(command(name, out), cwd=work, capture_output=True, text=True, env=_environment())
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    (folder,) = (work / out).iterdir()
    return bits(folder)


def resumed(name: str, work: Path) -> dict[str, Any]:
    """The same run, killed as soon as it has saved something, and again, until it ends."""
    out = f"runs/{name}-resumed".replace(" ", "-")
    seen = 0
    for _ in range(20):
        process = subprocess.Popen(
            [*command(name, out), "--resume"], cwd=work, stdout=-3, stderr=-3, env=_environment(), process_group=0
        )
        while process.poll() is None:
            saved = [path for path in (work / out).rglob("checkpoints/*.safetensors") if path.name[0] != "."]
            if len(saved) > seen:
                seen = len(saved)
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.01)
        if process.returncode == 0:
            (folder,) = (work / out).iterdir()
            return bits(folder)
    sys.exit(f"{name}: it never ended")


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": str(Path(tempfile.gettempdir()) / "lock-cache")}


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """The places where two nested values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in dict.fromkeys([*one, *other]) if key not in ADDED and one.get(key) != other.get(key)]
        return [line for key in keys for line in differences(one.get(key), other.get(key), f"{where}/{key}")]
    return [] if one == other else [f"{where}: {str(one)[:80]} and {str(other)[:80]}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--only", help="names that contain this")
    given = parser.parse_args()
    found: dict[str, Any] = json.loads(given.out.read_text()) if given.out.exists() else {}  # goes on where it stopped
    names = [name for name in RUNS if not given.only or given.only in name]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        draw_pictures(work / "pictures")
        for name in [name for name in names if name not in found]:
            found[name] = run(name, work)
            given.out.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
            print(name, flush=True)
            if name in RESUMED and (wrong := differences(found[name], resumed(name, work))):
                sys.exit(f"{name} is another after a kill: {wrong}")
    if given.against:
        before = json.loads(given.against.read_text())
        for entry in before.values():
            entry["facts"] = {name: value for name, value in entry["facts"].items() if name not in MOVED}
        wrong = differences({name: before.get(name) for name in names}, {name: found[name] for name in names})
        print("\n".join(wrong) or f"{len(found)} runs: equal bits")
        sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
