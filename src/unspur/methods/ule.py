"""ULE: train a student that takes shortcuts, and beside it a teacher that looks where the student does not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from unspur.core.options import renamed
from unspur.data.base import Batch, Split
from unspur.errors import UnspurError, require
from unspur.methods.base import Baseline, Fit, Method
from unspur.models.base import evaluating, head_of
from unspur.parts.layers import from_input, from_layer, frozen_up_to, layer_named, with_output
from unspur.parts.opposition import Distance, Over, Scalar, opposition, scalar_of, similarities
from unspur.parts.student import classes_of, new_student
from unspur.train.loop import train as train_model
from unspur.train.losses import cross_entropy
from unspur.train.moments import Carry, Minimised, Moment
from unspur.train.orders import Passes
from unspur.train.recipe import Adadelta, Optimiser
from unspur.train.schedules import Cosine
from unspur.train.session import Session

STAGE = "ule"
Scale = Literal["none", "equal", "first"]


@dataclass(frozen=True)
class ULE(Method):
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
    logit, the batch and squares are the defaults. The paper brings both terms to the same order of magnitude; they are
    left as they are here. ``scale=first`` does what the paper says, once, by the first batch; ``scale=equal`` does it
    in every batch, so that L weighs less as cross-entropy falls (results/notes/ule.md has all three). The rate falls to
    zero from that of PyTorch's own MNIST example, whose network the paper uses; then ERM is as right as published.

    What lambda does depends on the number of steps: the longer the training, the more cross-entropy wins. The paper
    chooses it for each data set. Here it is the smallest that costs at most one point of accuracy on held-out images as
    they are, for which no group label is needed: 0.05 for the code, 0.02 for colours, 0.1 without a shortcut. Matching
    gradients is local: `metrics.shortcut` shows what it achieved. Runs on one device.
    """

    name: ClassVar[str] = "ule"
    paper: ClassVar[str] = "UnLearning from Experience"
    cost: ClassVar[str] = "3.5"
    own_stages: ClassVar[tuple[str, ...]] = ("student",)
    mixes: ClassVar[bool] = False
    one_device: ClassVar[bool] = True
    training: Optimiser = renamed("erm", Adadelta(schedule=Cosine()))  # of both networks: sgd, adam, adamw, adadelta
    lam: float = 0.05  # lambda of Eq. 3, in [0, 1]: the weight of the teacher's cross-entropy; 1 is ERM
    student: str | None = None  # its architecture; none: the teacher's, starting as a copy of it with a new head
    compare: Literal["saliency", "activations"] = "saliency"  # what Eq. 2 is about
    layer: str | None = None  # where to look in the teacher; none: the input (saliency) or the head (activations)
    student_layer: str | None = None  # where to look in the student; none: as in the teacher
    scalar: Scalar = "logit"  # what is differentiated: the largest logit, the largest probability or the label's logit
    over: Over = "batch"  # what N(.) takes its maximum over: the whole batch, or each sample
    distance: Distance = "mse"  # mse, or l1 (4.3.3)
    scale: Scale = "none"  # L as it is, or times CE / L: of each batch (equal), or of the first one, for good (first)

    def __post_init__(self) -> None:
        require(0 <= self.lam <= 1, f"lam must lie in [0, 1] but got {self.lam}.")
        require(
            self.training.name != "kron",
            "ULE trains two networks at once, for which training=kron is not made; use sgd, adam, adamw or adadelta.",
        )
        require(self.training.asam == 0, "ULE has a second derivative of its own, so training.asam must be 0.")
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

    def _fit(self, model: nn.Module, train: Split, val: Split | None, session: Session) -> Fit:
        return self.fit_pair(model, self.stage_model("student", model, train, session.seed), train, session)

    def stage_model(self, stage: str, model: nn.Module, train: Split, seed: int) -> nn.Module:
        """The student before its training, for the teacher ``model``: what the weights of the stage belong to."""
        return new_student(self.student, model, train, seed)

    def fit_pair(self, teacher: nn.Module, student: nn.Module, train: Split, session: Session | None = None) -> Fit:
        """Train any two networks for the same inputs and classes, in place."""
        session = session or Session()
        some = train.batch(torch.arange(min(2, len(train)))).x
        _require_same_classes(teacher, student, some)
        some, models = some.to(session.device), {"teacher": teacher, "student": student}
        with contextlib.ExitStack() as stack:
            looks = {
                role: stack.enter_context(self._looking(model.to(session.device), self._place(role), some))
                for role, model in models.items()
            }
            pair, first = _Pair(teacher, student, [*looks["teacher"].still, *looks["student"].still]), FirstRatio()

            def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
                return self._losses(pair, looks, first, batch, step)

            order, recipe = Passes(by_rank=False), self.training
            train_model(
                pair, train, recipe, stage=STAGE, session=session, objective=objective, order=order, carry=[first]
            )
        lines = session.history.get(STAGE, [])
        last = {name: lines[-1][name] for name in FIGURES} if lines else {}
        return Fit(teacher, {"student": student}, Baseline("student", "student"), figures={"last_epoch": last})

    def _losses(self, pair: _Pair, looks: Mapping[str, _Look], first: FirstRatio, batch: Batch, step: int) -> Minimised:
        """Eq. 3 for the teacher and cross-entropy for the student, which know nothing of each other's gradients."""
        logits, at = looks["student"].forward(batch.x)
        student_ce = cross_entropy(logits, batch).mean()
        student_right = _share_right(logits, batch)
        seen = self.seen(logits, at, batch, differentiable=False) if self.lam < 1 else None
        logits, at = looks["teacher"].forward(batch.x)
        ce = loss = cross_entropy(logits, batch).mean()
        apart = ratio = torch.zeros_like(ce)
        if seen is not None:
            own = self.seen(logits, at, batch, differentiable=True)
            _require_signal(self, {"teacher": (pair.teacher, own), "student": (pair.student, seen)}, step)
            apart = opposition(seen, own, self.over, self.distance)
            ratio = (ce / apart).detach()
            loss = self.teacher_loss(ce, apart, ratio if first.ratio is None else first.ratio.to(ce.device))
        found = (ce, _share_right(logits, batch), apart, student_ce, student_right)
        return Minimised(loss + student_ce, logged=dict(zip(FIGURES, found, strict=True)), for_carry={"ratio": ratio})

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

    def teacher_loss(self, ce: Tensor, apart: Tensor, first: Tensor) -> Tensor:
        """Eq. 3, with the ratio of its terms in the first batch."""
        size = {"none": torch.ones_like(ce), "equal": (ce / apart).detach(), "first": first}[self.scale]
        return self.lam * ce + (1 - self.lam) * size * apart


FIGURES = ("loss", "accuracy", "opposition", "student_loss", "student_accuracy")  # of an epoch, the teacher's first


class FirstRatio(Carry):
    """CE / L of the first batch, from which on it stays."""

    saved: ClassVar[tuple[str, ...]] = ("ratio",)

    def __init__(self) -> None:
        self.ratio: Tensor | None = None

    def see(self, moment: Moment) -> None:
        if self.ratio is None:
            self.ratio = moment.found.for_carry["ratio"]


class _Look(NamedTuple):
    forward: Callable[[Tensor], tuple[Tensor, Tensor]]  # logits, and the place that is looked at
    still: list[nn.Module]  # frozen layers, which stay in evaluation mode


class _Pair(nn.Module):
    """Two networks that train beside each other; the teacher is the one that answers."""

    memory_format = torch.preserve_format  # second derivatives are not faster in another layout

    def __init__(self, teacher: nn.Module, student: nn.Module, still: list[nn.Module]) -> None:
        super().__init__()
        self.student, self.teacher = student, teacher
        self.still = tuple(still)  # not in a list, which would register them once more

    @property
    def networks(self) -> tuple[nn.Module, nn.Module]:
        """Both, of which ``forward`` calls one."""
        return self.teacher, self.student

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.teacher(x)
        return logits

    def train(self, mode: bool = True) -> _Pair:
        super().train(mode)
        for layer in self.still:
            layer.training = False
        return self


def _share_right(logits: Tensor, batch: Batch) -> Tensor:
    return (logits.argmax(1) == batch.y).float().mean()


def _require_same_classes(teacher: nn.Module, student: nn.Module, x: Tensor) -> None:
    ours, theirs = classes_of(teacher, x), classes_of(student, x)
    require(ours == theirs, f"Teacher and student must tell the same classes apart, but they have {ours} and {theirs}.")


def _require_signal(method: ULE, both: Mapping[str, tuple[nn.Module, Tensor]], step: int) -> None:
    """Eq. 2 needs something to compare, and something that the teacher can change."""
    for role, (network, seen) in both.items():
        if not seen.any():
            advice = "lower training.lr, and with scalar=probability use scalar=logit"
            if not head_of(network).weight.any():  # as vision transformers are built
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
