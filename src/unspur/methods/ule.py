"""ULE: train a student that takes shortcuts, and beside it a teacher that looks where the student does not."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from unspur.core.seeds import derive, seeded, stream
from unspur.data.base import Batch, Dataset, Split
from unspur.errors import Diverged, UnspurError, require
from unspur.methods.base import Fit
from unspur.models.base import evaluating, head_of
from unspur.models.catalog import arch_named
from unspur.models.classifier import Normalize
from unspur.models.spec import ArchSpec
from unspur.parts.layers import from_input, from_layer, frozen_up_to, layer_named, with_output
from unspur.parts.opposition import Distance, Over, Scalar, opposition, scalar_of, similarities
from unspur.train.loop import epoch_batches, reaching
from unspur.train.losses import cross_entropy
from unspur.train.recipe import Adadelta, Cosine, Optimiser
from unspur.train.session import Session
from unspur.train.steps import require_one_device

STAGE = "ule"

Scale = Literal["none", "equal"]


@dataclass(frozen=True)
class ULE:
    """Unlearning from experience: a teacher whose saliency is driven to the opposite of a biased student's (ULE, 3).

    Both networks see identical batches and take their steps in parallel. The student minimises cross-entropy; the
    teacher, which is the model that is kept, minimises lambda CE + (1 - lambda) L(-g_s, g_t) (Eq. 3).

    There are three forms. As it is, the saliency is taken at the input and all layers train (4.2, 4.3.4). With
    ``layer`` it is taken at that layer's output, and all that runs before it is frozen and the same in both networks
    (3.1); for the last layer of a frozen network `ule_last_layer` does the same much faster. With
    ``compare=activations`` the similarities E = A A^T of a batch's samples are compared in place of saliency, which
    two layers of any sizes have (3.1); the layers are the heads, or those named.

    Where the paper is open, trials on held-out training digits were made (results/ule-trials.jsonl: `mnist_sc`, and
    `colored_mnist` without conflicts). What s(x) is, whether N(.) takes its maximum over the batch or each sample, and
    L1 or squares make little difference: 94 to 95 % are right without the code, 34 to 37 % without colours. The largest
    logit, the batch and squares are the defaults. The terms are means and left as they are; with ``scale=equal``, which
    gives both the size of cross-entropy at every step, 64 and 91 % are right without the code at lambda 0.5 and 0.9,
    79 % by ERM. The rate falls to zero from that of PyTorch's own MNIST example, whose network the paper uses; then ERM
    is as right as published.

    What lambda does depends on the number of steps: the longer the training, the more cross-entropy wins. The paper
    chooses it for each data set. Here it is the smallest that costs at most one point of accuracy on held-out images as
    they are, for which no group label is needed: 0.05 for the code, 0.02 for colours, 0.1 without a shortcut. Matching
    gradients is local: `metrics.shortcut` tells what it achieved. Runs on one device.
    """

    name: ClassVar[str] = "ule"
    needs_groups: ClassVar[bool] = False
    mixes: ClassVar[bool] = False
    one_device: ClassVar[bool] = True
    erm: Optimiser = Adadelta(schedule=Cosine())  # how both networks are trained: sgd, adam, adamw or adadelta
    lam: float = 0.05  # lambda of Eq. 3, in [0, 1]: the weight of the teacher's cross-entropy; 1 is ERM
    student: str | None = None  # its architecture; none: the teacher's, starting as a copy of it with a new head
    compare: Literal["saliency", "activations"] = "saliency"  # what Eq. 2 is about
    layer: str | None = None  # where to look in the teacher; none: the input (saliency) or the head (activations)
    student_layer: str | None = None  # where to look in the student; none: as in the teacher
    scalar: Scalar = "logit"  # what is differentiated: the largest logit, the largest probability or the label's logit
    over: Over = "batch"  # what N(.) takes its maximum over: the whole batch, or each sample
    distance: Distance = "mse"  # mse, or l1 (4.3.3)
    scale: Scale = "none"  # none: the terms as they are; equal: L times CE / L, so that both have CE's size

    def __post_init__(self) -> None:
        require(0 <= self.lam <= 1, f"lam must lie in [0, 1] but got {self.lam}.")
        require(self.erm.asam == 0, "ULE has a second derivative of its own, so erm.asam must be 0.")
        require(
            self.layer is None or self.compare == "activations" or self.student is None,
            "Saliency at a layer needs the same layer in both networks; leave student out, or use compare=activations.",
        )
        require(
            self.student_layer is None or self.compare == "activations",
            "student_layer is for compare=activations; with saliency both networks are looked at in the same place.",
        )

    def check(self, model: nn.Module, train: Split, val: Split | None = None) -> None:
        """Both networks must have the layers that are named, and something that trains on the right side of them."""
        if not len(train):
            raise UnspurError("There is nothing to train on: the training set is empty.")
        some = train.batch(torch.arange(min(2, len(train)))).x
        for role, network in {"teacher": model, "student": self.stage_model("student", model, train, seed=0)}.items():
            device = next((p.device for p in network.parameters()), some.device)
            with evaluating(network), self._looking(network, self._place(role), some.to(device)) as look:
                require(
                    any(p.requires_grad for p in network.parameters()),
                    f"Nothing in the {role} comes after layer '{self._place(role)}', so nothing trains; name an "
                    "earlier one.",
                )
                if self.compare == "activations":
                    _require_trainable(self, role, look.forward(some.to(device))[1])

    def fit(
        self, model: nn.Module, train: Split, *, val: Split | None = None, seed: int = 0, session: Session | None = None
    ) -> Fit:
        self.check(model, train)
        return self.fit_pair(model, self.stage_model("student", model, train, seed), train, seed=seed, session=session)

    def stage_model(self, stage: str, model: nn.Module, train: Split, seed: int) -> nn.Module:
        """The student before its training, for the teacher ``model``: what the weights of the stage belong to."""
        return new_student(self.student, model, train, seed)

    def fit_pair(
        self, teacher: nn.Module, student: nn.Module, train: Split, *, seed: int = 0, session: Session | None = None
    ) -> Fit:
        """Train any two networks for the same inputs and classes, in place."""
        session = session or Session()
        require_one_device(session, "ULE")
        if not len(train):
            raise UnspurError("There is nothing to train on: the training set is empty.")
        some = train.batch(torch.arange(min(2, len(train)))).x
        _require_same_classes(teacher, student, some)
        models = {"teacher": teacher.to(session.device), "student": student.to(session.device)}
        with contextlib.ExitStack() as stack:
            looks = {}
            for role, model in models.items():
                looks[role] = stack.enter_context(self._looking(model, self._place(role), some.to(session.device)))
            networks = {role: _Network.of(model, looks[role], self.erm) for role, model in models.items()}
            figures = _train(self, networks["student"], networks["teacher"], train, seed, session)
        return Fit(teacher, {"student": student}, {"last_epoch": figures})

    def _place(self, role: str) -> str | None:
        """The layer to look at in the teacher or the student."""
        return (self.student_layer or self.layer) if role == "student" else self.layer

    @contextlib.contextmanager
    def _looking(self, model: nn.Module, place: str | None, some: Tensor) -> Iterator[_Look]:
        """How to look into ``model``, with what must not train frozen for the block."""
        if self.compare == "activations":
            layer = layer_named(model, place) if place else head_of(model)
            yield _Look(lambda x: with_output(model, layer, x), [])
        elif place is None:
            yield _Look(lambda x: from_input(model, x), [])
        else:
            layer = layer_named(model, place)
            with frozen_up_to(model, layer, some) as still:
                yield _Look(lambda x: from_layer(model, layer, x), still)

    def seen(self, logits: Tensor, at: Tensor, batch: Batch, *, differentiable: bool) -> Tensor:
        """What Eq. 2 compares of one network: its saliency at ``at`` (Eq. 1), or the similarities of ``at``."""
        if self.compare == "activations":
            return similarities(at) if differentiable else similarities(at.detach())
        scalar = scalar_of(logits, batch.y, self.scalar).sum()
        (gradient,) = torch.autograd.grad(scalar, at, create_graph=differentiable, retain_graph=True, allow_unused=True)
        if gradient is None:
            raise UnspurError(f"The logits do not depend on the output of layer '{self.layer}'; name another.")
        return gradient

    def teacher_loss(self, ce: Tensor, apart: Tensor) -> Tensor:
        """Eq. 3."""
        size = (ce / apart).detach() if self.scale == "equal" else 1.0
        return self.lam * ce + (1 - self.lam) * size * apart


class _Look(NamedTuple):
    forward: Callable[[Tensor], tuple[Tensor, Tensor]]  # logits, and the place that is looked at
    still: list[nn.Module]  # frozen layers, which stay in evaluation mode


class _Network(NamedTuple):
    """One of the two networks and how it is trained."""

    model: nn.Module
    look: _Look
    parameters: list[nn.Parameter]
    optimiser: torch.optim.Optimizer

    @classmethod
    def of(cls, model: nn.Module, look: _Look, recipe: Optimiser) -> _Network:
        parameters = [p for p in model.parameters() if p.requires_grad]
        return cls(model, look, parameters, recipe.optimiser(parameters))

    def train_mode(self) -> None:
        self.model.train()
        for layer in self.look.still:
            layer.training = False

    def backward(self, loss: Tensor) -> None:
        self.optimiser.zero_grad()
        loss.backward(inputs=self.parameters)  # and not to the input

    def state(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "optimiser": self.optimiser.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])


def new_student(arch: str | None, teacher: nn.Module, train: Split, seed: int, weights: str | None = None) -> nn.Module:
    """A student for ``teacher``: of ``arch``, or a copy of the teacher whose head is drawn anew.

    It begins with ``weights``, as `arch.weights` names them (None: the architecture's default), and normalises its
    input as these were trained, else as the teacher does, if that is possible.
    """
    seed = derive(seed, "student")
    if arch is None:
        student = copy.deepcopy(teacher)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            head_of(student).reset_parameters()
        return student
    some = train.batch(torch.arange(min(2, len(train)))).x
    classes = tuple(str(label) for label in range(_classes(teacher, some)))
    first = next((layer for layer in teacher.modules() if isinstance(layer, Normalize)), None)
    mean, std = (None, None) if first is None else (tuple(v.flatten().tolist()) for v in (first.mean, first.std))
    if mean is not None and len(mean) != train.sample_shape[0]:
        mean, std = None, None  # the teacher repeats grey images
    spec: ArchSpec = arch_named(arch)
    if weights is not None:
        spec = replace(spec, weights=weights)  # type: ignore[type-var]
    return spec.build(Dataset("train", train, train, {}, classes, mean=mean, std=std), seed=seed)


def _train(
    method: ULE, student: _Network, teacher: _Network, split: Split, seed: int, session: Session
) -> dict[str, float]:
    """Both networks on identical batches, epoch by epoch, resumable; the figures of the last epoch."""
    recipe, done, finished, figures = method.erm, 0, False, {}
    if state := session.load(STAGE):
        student.load(state["student"])
        teacher.load(state["teacher"])
        done, finished, figures = state["epoch"], state["finished"], state["figures"]
    while done < recipe.epochs and not finished:
        figures = _epoch(method, student, teacher, split, done, seed, session)
        done += 1
        if reached := reaching(teacher.model, split, recipe, session):
            finished, (figures["accuracy"], figures["loss"]) = True, reached
        session.log(STAGE, epoch=done, **figures, lr=teacher.optimiser.param_groups[0]["lr"])
        state = {"student": student.state(), "teacher": teacher.state(), "figures": figures}
        session.save(STAGE, state | {"epoch": done, "finished": finished})
    student.model.eval()
    teacher.model.eval()
    return figures


def _epoch(
    method: ULE, student: _Network, teacher: _Network, split: Split, epoch: int, seed: int, session: Session
) -> dict[str, float]:
    """One pass over the split; the running means."""
    recipe = method.erm
    batches = epoch_batches(len(split), recipe.batch_size, stream(seed, STAGE, epoch, "order"))
    moves = stream(seed, STAGE, epoch, "augment")
    student.train_mode()
    teacher.train_mode()
    total = torch.zeros(5, device=session.device)
    with seeded(seed, STAGE, epoch):
        for number, batch in enumerate(split.batches(batches, session.device, moves)):
            step = epoch * len(batches) + number
            for group in (*student.optimiser.param_groups, *teacher.optimiser.param_groups):
                group["lr"] = recipe.rate(epoch + number / len(batches), step)
            total += _step(method, student, teacher, batch, step) * len(batch.y)
            session.progress(STAGE, (step + 1) / (recipe.epochs * len(batches)))
    names = ("loss", "accuracy", "opposition", "student_loss", "student_accuracy")
    return dict(zip(names, (total / len(split)).tolist(), strict=True))


def _step(method: ULE, student: _Network, teacher: _Network, batch: Batch, step: int) -> Tensor:
    """One step of both networks; the teacher's loss, accuracy and opposition, the student's loss and accuracy."""
    unlearns = method.lam < 1
    logits, at = student.look.forward(batch.x)
    student_ce = cross_entropy(logits, batch).mean()
    student_right = (logits.argmax(1) == batch.y).float().mean()
    seen = method.seen(logits, at, batch, differentiable=False) if unlearns else None
    student.backward(student_ce)

    logits, at = teacher.look.forward(batch.x)
    ce = loss = cross_entropy(logits, batch).mean()
    apart = torch.zeros_like(ce)
    if seen is not None:
        own = method.seen(logits, at, batch, differentiable=True)
        _require_signal(method, {"teacher": (teacher, own), "student": (student, seen)}, step)
        apart = opposition(seen, own, method.over, method.distance)
        loss = method.teacher_loss(ce, apart)
    if not torch.isfinite(loss + student_ce):
        raise Diverged(STAGE, step)
    teacher.backward(loss)
    student.optimiser.step()
    teacher.optimiser.step()
    right = (logits.argmax(1) == batch.y).float().mean()
    return torch.stack([ce, right, apart, student_ce, student_right]).detach()


def _classes(model: nn.Module, x: Tensor) -> int:
    device = next((p.device for p in model.parameters()), x.device)
    with evaluating(model), torch.no_grad():
        return int(model(x.to(device)).shape[1])


def _require_same_classes(teacher: nn.Module, student: nn.Module, x: Tensor) -> None:
    ours, theirs = _classes(teacher, x), _classes(student, x)
    require(ours == theirs, f"Teacher and student must tell the same classes apart, but they have {ours} and {theirs}.")


def _require_signal(method: ULE, both: Mapping[str, tuple[_Network, Tensor]], step: int) -> None:
    """Eq. 2 needs something to compare, and something that the teacher can change."""
    for role, (network, seen) in both.items():
        if not seen.any():
            advice = "lower erm.lr, and with scalar=probability use scalar=logit"
            if not head_of(network.model).weight.any():  # as vision transformers are built
                advice = "its last layer is zero, so begin with weights in which it is not (arch.weights)"
            raise UnspurError(
                f"The {method.compare} of the {role} is zero everywhere at step {step}: nothing it sees changes its "
                f"output; {advice}."
            )
    _require_trainable(method, "teacher", both["teacher"][1])


def _require_trainable(method: ULE, role: str, seen: Tensor) -> None:
    if not seen.requires_grad:
        raise UnspurError(
            f"Nothing that trains changes the {role}'s {method.compare}, so it cannot unlearn; name a later layer."
        )
