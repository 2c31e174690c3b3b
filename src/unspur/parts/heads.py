"""Many linear heads on the same features, trained at once: ULE's students and teachers for a whole grid of settings.

The saliency of a linear head is known without differentiating: the largest logit's gradient with respect to the
features is the weight row of that class. So Eq. 2 needs only the rows of the two heads and the number of samples in the
batch for which the student predicts class a and the teacher class c. Its gradient is a combination of these rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from unspur.parts.opposition import Distance, Over

Compare = Literal["saliency", "activations"]


class Point(NamedTuple):
    """One setting of the grid."""

    lam: float
    lr: float
    l2: float


class Eq3(NamedTuple):
    """How the two terms of the teacher's loss are formed; see the fields of the same names of the method ULE."""

    compare: Compare
    over: Over
    distance: Distance
    equal: bool  # whether L is brought to the size of CE


class Head(NamedTuple):
    """A linear layer's weights."""

    weight: Tensor  # (classes, features)
    bias: Tensor | None


class HeadBatch(NamedTuple):
    """One batch of features, one-hot labels, and each sample's weight in the cross-entropy."""

    x: Tensor
    targets: Tensor  # (classes, samples)
    weight: Tensor | float = 1.0  # (samples,), with a mean of 1 over the data


class Pairs:
    """A student for each rate and L2, and for each student one teacher per lambda, on which students do not depend.

    All are trained by SGD with momentum. The students are the first heads of the stack; the teachers follow, grouped by
    student.
    """

    def __init__(
        self,
        lams: Sequence[float],
        lrs: Sequence[float],
        l2s: Sequence[float],
        student: Head,
        teacher: Head,
        *,
        momentum: float,
        loss: Eq3,
        sees: Tensor | None = None,
    ) -> None:
        """``sees`` (2, features) is 1 for the features that students and teachers see; None: all of them."""
        settings = list(itertools.product(lrs, l2s))
        self.points = [Point(lam, *setting) for setting in settings for lam in lams]
        self.shape = (len(settings), len(lams), *teacher.weight.shape)  # students, lambdas, classes, features
        counts = (len(settings), len(self.points))
        like = teacher.weight

        def stacked(values: Sequence[Tensor]) -> Tensor:
            return torch.cat([value.expand(n, *value.shape) for value, n in zip(values, counts, strict=True)]).clone()

        self.weight = stacked([student.weight, teacher.weight])
        self.velocity = torch.zeros_like(self.weight)
        biases = [head.bias for head in (student, teacher)]
        self.bias, self.biased = None, stacked([like.new_tensor([float(bias is not None)]) for bias in biases])
        if self.biased.any():
            self.bias = stacked([like.new_zeros(len(like)) if bias is None else bias for bias in biases])
            self.bias_velocity = torch.zeros_like(self.bias)
        rates = [lr for lr, _ in settings] + [point.lr for point in self.points]
        decays = [l2 for _, l2 in settings] + [point.l2 for point in self.points]
        self.lr, self.l2 = (like.new_tensor(values)[:, None] for values in (rates, decays))
        self.lam = like.new_tensor([point.lam for point in self.points])
        self.ce_weight = torch.cat([like.new_ones(len(settings)), self.lam])[:, None, None]
        self.momentum, self.loss = momentum, loss
        numbers = torch.arange(len(self.points), device=like.device).view(len(settings), len(lams), 1)
        self.first_pair = numbers * len(like) ** 2  # where each teacher's pairs of classes begin when all are numbered
        self.sees = None if sees is None else stacked([sees[:1], sees[1:]])

    def step(self, batch: HeadBatch) -> None:
        """One step of every student and every teacher, all on the same batch."""
        students, lams = self.shape[:2]
        logits = self.logits(batch.x)
        log = functional.log_softmax(logits, 1)
        share = batch.weight / len(batch.x)
        size = 1 - self.lam.view(students, lams)  # what L is multiplied with in Eq. 3
        if self.loss.equal:
            size = size * -(log[students:] * (batch.targets * share)).sum((1, 2)).view_as(size)  # CE, still without / L
        of_logits = log.exp_().sub_(batch.targets).mul_(self.ce_weight * share)
        if self.loss.compare == "activations":
            outputs = logits[:students], logits[students:].unflatten(0, (students, lams))
            apart, slope = activations_opposition(*outputs, self.loss)
            size = size / apart if self.loss.equal else size
            of_logits[students:] += (size[:, :, None, None] * slope).flatten(0, 1)
        gradient = (of_logits.flatten(0, 1) @ batch.x).view_as(self.weight)
        if self.loss.compare == "saliency":
            met = class_pairs(_largest(logits), self.first_pair, self.shape)
            found = rows_opposition(self.weight, met, self.loss)
            size = size / found.apart if self.loss.equal else size
            found.add_to(gradient[students:].view(self.shape), self.weight, size)
        self._descend(gradient, of_logits.sum(2))

    def logits(self, x: Tensor) -> Tensor:
        """(heads, classes, samples): in this order softmax and products are fastest."""
        flat = self.weight.flatten(0, 1)
        logits = flat @ x.T if self.bias is None else torch.addmm(self.bias.view(-1, 1), flat, x.T)
        return logits.view(*self.weight.shape[:2], len(x))

    def predictions(self, x: Tensor) -> Tensor:
        """The class that each teacher predicts for each sample: (teachers, samples)."""
        return _largest(self.logits(x)[self.shape[0] :])

    def heads(self, number: int) -> tuple[Head, Head]:
        """The student and the teacher of a point, as they are now."""
        return self._head(number // self.shape[1]), self._head(self.shape[0] + number)

    def finite(self) -> Tensor:
        """Which teachers have weights that are numbers."""
        return self.weight[self.shape[0] :].isfinite().flatten(1).all(1).cpu()

    def state(self) -> dict[str, Any]:
        names = ("weight", "velocity") if self.bias is None else ("weight", "velocity", "bias", "bias_velocity")
        return {name: getattr(self, name) for name in names}

    def load(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            getattr(self, name).copy_(value)

    def _head(self, number: int) -> Head:
        bias = self.bias[number].clone() if self.bias is not None and self.biased[number] else None
        return Head(self.weight[number].clone(), bias)

    def _descend(self, gradient: Tensor, of_bias: Tensor) -> None:
        """torch.optim.SGD's step, for every head at its own rate."""
        if self.sees is not None:
            gradient *= self.sees
        gradient.addcmul_(self.weight, self.l2[:, :, None])
        self.velocity.mul_(self.momentum).add_(gradient)
        self.weight.addcmul_(self.velocity, self.lr[:, :, None], value=-1)
        if self.bias is not None:
            of_bias = of_bias.mul_(self.biased).addcmul_(self.bias, self.l2)
            self.bias_velocity.mul_(self.momentum).add_(of_bias)
            self.bias.addcmul_(self.bias_velocity, self.lr, value=-1)


class Slope(NamedTuple):
    """Eq. 2 between linear heads, and its gradient with respect to the teachers' rows."""

    apart: Tensor  # (students, lambdas)
    own: Tensor  # the part that is a multiple of the teacher's row: (students, lambdas, classes)
    other: Tensor  # that of the student's rows: (students, lambdas, teacher's classes, student's classes)
    rest: Tensor | None  # that of no rows: (students, lambdas, classes, features)
    peak: Tensor  # the places of the weights that N(.) divides by, in the flattened rows: (students, lambdas, places)
    at_peak: Tensor  # the part that only these have

    def add_to(self, gradient: Tensor, weight: Tensor, size: Tensor) -> None:
        """Add ``size`` times the gradient to that of the teachers' rows."""
        students, size = len(size), size[:, :, None, None]
        if self.rest is None:
            gradient.addcmul_(weight[students:].view_as(gradient), self.own[..., None] * size)
            gradient.flatten(1, 2).baddbmm_((self.other * size).flatten(1, 2), weight[:students])
        else:
            gradient.addcmul_(self.rest, size)
        gradient.flatten(2).scatter_add_(2, self.peak, self.at_peak * size[..., 0])


def _largest(logits: Tensor) -> Tensor:
    return logits.max(1).indices  # as argmax(1), which takes twenty times as long here


def class_pairs(predicted: Tensor, first_pair: Tensor, shape: tuple[int, ...]) -> Tensor:
    """For how many samples a student predicts a and its teacher c: (students, lambdas, a, c)."""
    students, lams, classes, _ = shape
    pairs = predicted[students:].view(students, lams, -1) + first_pair
    pairs.add_(predicted[:students, None], alpha=classes)
    return torch.bincount(pairs.view(-1), minlength=students * lams * classes**2).view(shape[:3] + shape[2:3])


def rows_opposition(weight: Tensor, met: Tensor, loss: Eq3) -> Slope:
    """Eq. 2 for stacked heads (heads, classes, features); ``met`` is what ``class_pairs`` counted.

    With u and v the normalised rows and n(a, c) the share of samples for which the student says a and the teacher c,
    L = sum over a, c of n(a, c) |u_a + v_c|^2 / features, and dL/dv_c = 2 (n(c) v_c + sum over a of n(a, c) u_a) /
    features. With v = w / max|w|, the gradient by the rows w is a combination of the rows, except at their peaks.
    """
    students, lams, classes, _ = met.shape
    width = weight.shape[2]
    met = met.to(weight.dtype)
    met /= met[0, 0].sum() * width  # n(a, c) / features
    count = torch.cat([met[:, 0].sum(2), met.sum(2).flatten(0, 1)])  # of each head's rows
    scale, peak, value = _peaks(weight, count, loss.over)
    u_scale, v_scale = scale[:students, None, None], scale[students:].view(met.shape[:3])[..., None]
    other = met.mT * (u_scale * v_scale)
    own = count * scale.square()
    if loss.distance == "mse":
        alone = own * weight.square().sum(2)
        rows = weight[:students], weight[students:].view(students, lams * classes, width)
        agree = (other * (rows[1] @ rows[0].mT).view_as(other)).sum(3)
        alone_student, alone = alone[:students].sum(1, keepdim=True), alone[students:].view_as(agree)
        along, rest = 2 * (alone + agree), None
        apart = along.sum(2) - alone.sum(2) + alone_student
    else:
        apart, along, rest = _absolute(weight * scale[..., None], met)
        rest *= v_scale
    if loss.over == "batch":
        along = along.sum(2, keepdim=True)
    # At its peak v is 1 or -1, and moving the peak moves all of v.
    places = (students, lams, -1)
    at_peak = -along * value[students:].view(places) * v_scale[:, :, : along.shape[2], 0].square()
    return Slope(apart, 2 * own[students:].view(met.shape[:3]), 2 * other, rest, peak[students:].view(places), at_peak)


def _absolute(normalised: Tensor, met: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The sum of n(a, c) |u_a + v_c| / features, its gradient times v, and its gradient with respect to v."""
    students, lams, classes, _ = met.shape
    u, v = normalised[:students], normalised[students:].unflatten(0, (students, lams))
    slope, apart = torch.zeros_like(v), v.new_zeros(students, lams)
    for label in range(classes):
        both, share = u[:, None, label, None] + v, met[:, :, label, :, None]
        slope += share * both.sign()
        apart += (share * both.abs()).sum((2, 3))
    return apart, (slope * v).sum(3), slope


def _peaks(rows: Tensor, count: Tensor, over: Over) -> tuple[Tensor, Tensor, Tensor]:
    """1 / max|.| for each row, the places of these maxima in the flattened rows, and the values there.

    Over the batch, only the rows that were counted take part. Where everything is zero nothing is divided.
    """
    width = rows.shape[-1]
    size = rows.abs().amax(-1)
    if over == "batch":
        size, row = size.masked_fill_(count == 0, 0.0).max(-1, keepdim=True)
        picked = rows.gather(-2, row[..., None].expand(*row.shape, width))
    else:
        row, picked = torch.arange(rows.shape[-2], device=rows.device), rows
    column = picked.abs().argmax(-1, keepdim=True)
    scale = size.masked_fill(size == 0, 1.0).reciprocal_().expand(rows.shape[:-1])
    return scale, (column.squeeze(-1) + row * width), picked.gather(-1, column).squeeze(-1)


def activations_opposition(student: Tensor, teacher: Tensor, loss: Eq3) -> tuple[Tensor, Tensor]:
    """L(-E_s, E_t) with E = A A^T, and its gradient with respect to the teachers' outputs.

    The outputs are (students, classes, samples) and (students, lambdas, classes, samples).
    """
    v, through = _normalised(teacher.mT @ teacher, loss.over)
    u, _ = _normalised(student.mT @ student, loss.over)
    both, count = u[:, None] + v, v.shape[-1] ** 2
    if loss.distance == "mse":
        apart, slope = both.square().mean((2, 3)), both * (2 / count)
    else:
        apart, slope = both.abs().mean((2, 3)), both.sign() / count
    slope = through(slope)
    return apart, teacher @ (slope + slope.mT)


def _normalised(e: Tensor, over: Over) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """N(E), and a function that turns a gradient with respect to N(E) into one with respect to E."""
    scale, peak, value = _peaks(e, torch.ones_like(e[..., 0]), over)
    v = e * scale[..., None]

    def through(slope: Tensor) -> Tensor:
        along = (slope * v).sum(-1)
        if over == "batch":
            along = along.sum(-1, keepdim=True)
        at_peak = -along * value * scale[..., : along.shape[-1]]
        return slope.flatten(-2).scatter_add(-1, peak, at_peak).view_as(slope) * scale[..., None]

    return v, through
