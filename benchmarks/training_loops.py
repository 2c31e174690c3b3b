"""Training here against what people would use instead. Bounds: at least level with the faster of a plain PyTorch loop
with a DataLoader and Lightning; at least 2 x SpuCo 2.0.3's ERM, and with groupdro at least 2 x its GroupDRO.

python benchmarks/training_loops.py [--data digits|photographs] [--images 4000] [--epochs 10] [--peers FOLDER]

The same network (small_cnn), images, optimiser, batches and epochs for each, in turns, each in a process of its own.
Images are biased_mnist of the embedded digits, in memory, or photographs of 500x375 in a folder, at 64 pixels, whose
decoding is part of the training. GroupDRO gets the groups of label and attribute, drawn alike, and the same step of the
weights (0.01). Lightning and SpuCo come into an environment of their own in FOLDER (default: a temporary one), on top
of the packages that this Python has. SpuCo's loader always starts four processes, which is its own choice; the plain
loop and Lightning have none for images in memory and one a core for photographs, which is faster.
"arithmetic" is what no loop can be faster than: the network's steps in its fastest layout on a batch that is there.
Beside the clock, which other work on the machine distorts, stands the time that processors worked, loaders' included;
the bounds are on that.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from labelling import photographs
from side_by_side import verdict
from torch import Tensor, nn
from torch.utils.data import DataLoader
from training_images import BATCH, FEW, SOURCES, TESTED, Source

RATE, MOMENTUM, ROUNDS = 0.01, 0.9, 3
STEP = 0.01  # of the groups' weights, SpuCo's default
PEERS = ("pytorch-lightning", "spuco==2.0.3")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", choices=SOURCES, default="digits")
    parser.add_argument("--images", type=int, default=4_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--child", nargs=2, metavar=("CONTENDER", "FOLDER"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        name, folder = given.child
        print(json.dumps(timed(CONTENDERS[name], SOURCES[given.data](Path(folder), given.images), given.epochs)))
        return 0
    with tempfile.TemporaryDirectory() as name:
        python = environment(given.peers or Path(name))
        if given.data == "photographs":
            photographs(Path(name) / "images", given.images + TESTED, distinct=given.images + TESTED)
        rates = measured(python, given, Path(name))
    known = [rates[name] for name in ("plain loop", "Lightning") if name in rates]
    holds = [
        verdict("unspur, over the faster of a plain loop and Lightning", rates["unspur"] / max(known), at_least=1.0)
    ]
    for own, theirs in (("unspur", "SpuCo ERM"), ("unspur GroupDRO", "SpuCo GroupDRO")):
        if theirs in rates:
            holds.append(verdict(f"{own}, over {theirs}", rates[own] / rates[theirs], at_least=2.0))
    return int(not all(holds))


def environment(folder: Path) -> Path:
    """A Python with the peers, made on first use, which sees the packages of this one."""
    python = folder / "env" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "env", with_pip=True)
        own = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], stdout=subprocess.PIPE, text=True
        ).stdout.strip()
        (Path(own) / "parent.pth").write_text(sysconfig.get_path("purelib") + "\n")
        subprocess.run([python, "-m", "pip", "install", "-q", *PEERS], check=False)
    return python


def measured(python: Path, given: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Images a second of each contender: the median over rounds in which each has its turn."""
    images, epochs = given.images, given.epochs
    worked: dict[str, list[float]] = {}
    clock: dict[str, list[float]] = {}
    where = f"{torch.get_num_threads()} threads, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{images:,} {given.data}, {epochs} epochs, {where}", flush=True)
    for _ in range(ROUNDS):
        for name in CONTENDERS:
            peer = name.startswith(("Lightning", "SpuCo"))
            more = ["--data", given.data, "--images", str(images), "--epochs", str(epochs)]
            command = [python if peer else sys.executable, __file__, "--child", name, folder, *more]
            ended = subprocess.run(command, capture_output=True, text=True)
            if ended.returncode:
                print(f"{name} could not run: {ended.stderr.strip().splitlines()[-1]}")
                continue
            wall, cpu = json.loads(ended.stdout.splitlines()[-1])
            clock.setdefault(name, []).append(wall)
            worked.setdefault(name, []).append(cpu)
    rates = {name: images * epochs / statistics.median(times) for name, times in worked.items()}
    for name, rate in rates.items():
        print(
            f"{name}: {rate:,.0f} images a second of processor, {images * epochs / min(clock[name]):,.0f} by the clock"
        )
    return rates


def timed(train: Contender, source: Source, epochs: int) -> tuple[float, float]:
    """Seconds of a training by the clock, and of processors."""
    warnings.simplefilter("ignore")
    from unspur.models.catalog import build_model
    from unspur.models.torchvision_compat import import_torchvision

    import_torchvision()  # the peers import it, too
    model = build_model("small_cnn", source.data)
    train(model, source, 1, FEW)  # what is done once, such as starting threads
    began, worked = time.perf_counter(), processor()
    train(model, source, epochs, None)
    return time.perf_counter() - began, processor() - worked


def processor() -> float:
    """Seconds that processors worked for this process and for those that it has ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def ours(model: nn.Module, source: Source, epochs: int, count: int | None) -> None:
    from unspur.train.loop import train
    from unspur.train.recipe import SGD
    from unspur.train.session import Session

    recipe = SGD(lr=RATE, momentum=MOMENTUM, epochs=epochs, batch_size=BATCH)
    train(model, source.split(count), recipe, stage="erm", session=Session())


def loader(source: Source, count: int | None) -> DataLoader[tuple[Tensor, Tensor]]:
    kept = source.loaders > 0
    return DataLoader(
        source.pairs(count), BATCH, shuffle=True, num_workers=source.loaders, persistent_workers=kept, pin_memory=False
    )


def plain(model: nn.Module, source: Source, epochs: int, count: int | None) -> None:
    optimiser = torch.optim.SGD(model.parameters(), RATE, MOMENTUM)
    model.train()
    batches = loader(source, count)
    for _ in range(epochs):
        for x, y in batches:
            loss = nn.functional.cross_entropy(model(x), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()


def arithmetic(model: nn.Module, source: Source, epochs: int, count: int | None) -> None:
    x, y = (torch.stack(each) for each in zip(*(source.pairs(BATCH)[at] for at in range(BATCH)), strict=True))
    model.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    x = x.contiguous(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(model.parameters(), RATE, MOMENTUM)
    for _ in range(epochs * -(-(count or len(source.pairs())) // BATCH)):  # type: ignore[arg-type]
        loss = nn.functional.cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def lightning(model: nn.Module, source: Source, epochs: int, count: int | None) -> None:
    import pytorch_lightning

    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)

    class Module(pytorch_lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = model

        def training_step(self, batch: tuple[Tensor, Tensor], number: int) -> Tensor:
            x, y = batch
            return nn.functional.cross_entropy(self.net(x), y)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), RATE, MOMENTUM)

    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = pytorch_lightning.Trainer(max_epochs=epochs, accelerator="cpu", **quiet)
    trainer.fit(Module(), loader(source, count))


def spuco(model: nn.Module, source: Source, epochs: int, count: int | None) -> None:
    from spuco.robust_train import ERM

    optimiser = torch.optim.SGD(model.parameters(), RATE, MOMENTUM)
    ERM(model=model, trainset=source.pairs(count), batch_size=BATCH, optimizer=optimiser, num_epochs=epochs).train()


def our_groupdro(model: nn.Module, source: Source, epochs: int, count: int | None) -> None:
    from unspur.methods.groupdro import GroupDRO
    from unspur.train.recipe import SGD

    recipe = SGD(lr=RATE, momentum=MOMENTUM, epochs=epochs, batch_size=BATCH)
    GroupDRO(training=recipe, eta=STEP, adjustment=0.0).fit(model, source.split(count), seed=0)


def spuco_groupdro(model: nn.Module, source: Source, epochs: int, count: int | None) -> None:
    from spuco.datasets import GroupLabeledDatasetWrapper
    from spuco.robust_train import GroupDRO

    number = source.groups(count)
    groups = {(0, each): (number == each).nonzero().squeeze(1).tolist() for each in number.unique().tolist()}
    labelled = GroupLabeledDatasetWrapper(source.pairs(count), groups)
    optimiser = torch.optim.SGD(model.parameters(), RATE, MOMENTUM)
    method = GroupDRO(model=model, trainset=labelled, batch_size=BATCH, optimizer=optimiser, num_epochs=epochs)
    assert method.group_weighted_loss.group_weight_lr == STEP
    method.train()


Contender = Callable[[nn.Module, Source, int, int | None], None]
CONTENDERS: dict[str, Contender] = {
    "unspur": ours,
    "arithmetic": arithmetic,
    "plain loop": plain,
    "Lightning": lightning,
    "SpuCo ERM": spuco,
    "unspur GroupDRO": our_groupdro,
    "SpuCo GroupDRO": spuco_groupdro,
}

if __name__ == "__main__":
    sys.exit(main())
