"""Why large logits favour the core: Propositions 1 and 2 of the large-learning-rate paper (section 6, supplement D).

A network that predicts by the shortcut is right on bias-aligned samples and wrong on bias-conflicting ones. Scale its
logits f by k: the loss of the wrong ones grows like k, that of the right ones falls like e^(-alpha k). A sample is
taken to conflict where its label is not the prediction, which is what "predicts according to the spurious decision
rule" means. Everything is in logarithms, since the ratios leave the range of floats at moderate k.

Both propositions write O(.), an upper bound that a constant ratio would also meet; their proofs show, and the tests
check, the growth itself.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from unspur.errors import require


def margins(logits: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """(beta, alpha) of a binary predictor: how far the conflicting samples are wrong and the aligned ones right.

    >>> conflicting, aligned = margins(torch.tensor([[3.0, 1.0], [0.0, 4.0]]), torch.tensor([1, 1]))
    >>> conflicting, aligned
    (tensor([2.]), tensor([4.]))
    """
    require(
        logits.ndim == 2 and logits.shape[1] == 2,
        f"Proposition 1 is about two classes, but the logits have shape {tuple(logits.shape)}; give (samples, 2).",
    )
    right = logits.gather(1, y[:, None])[:, 0] - logits.gather(1, 1 - y[:, None])[:, 0]
    _require_both_kinds(right)
    return -right[right < 0], right[right > 0]


def _require_both_kinds(right: Tensor) -> None:
    """Demand wrong and right samples and no tie, given how far the true class leads the best other one."""
    wrong, correct = int((right < 0).sum()), int((right > 0).sum())
    require(
        wrong > 0 and correct > 0 and wrong + correct == len(right),
        f"Of {len(right)} samples {wrong} are predicted wrongly and {correct} rightly; "
        "the propositions need at least one of each and no ties.",
    )


def log_loss_ratio(logits: Tensor, y: Tensor, k: float) -> float:
    """Log of the loss of conflicting samples over that of aligned ones, at logits k f (Proposition 1, Eq. 1).

    The losses are log(1 + e^(k beta)) and log(1 + e^(-k alpha)), exactly.

    >>> round(log_loss_ratio(torch.tensor([[3.0, 1.0], [0.0, 4.0]]), torch.tensor([1, 1]), k=10), 3)
    42.996
    """
    beta, alpha = (margin.double() * k for margin in margins(logits, y))
    return float(functional.softplus(beta).sum().log() - torch.logsumexp(_log_softplus_negative(alpha), 0))


def _log_softplus_negative(x: Tensor) -> Tensor:
    """log log(1 + e^-x) for x > 0; beyond 40, log(1 + e^-x) = e^-x to the last bit."""
    return torch.where(x > 40, -x, functional.softplus(-x.clamp(max=40)).log())


def log_loss_ratio_limit(logits: Tensor, y: Tensor, k: float) -> float:
    """What `log_loss_ratio` tends to (Eq. 7): log(k sum(beta)) - log(m e^(-alpha k)), alpha the least aligned margin.

    The proof lets all aligned samples share one margin "without loss of generality". It does lose some: with different
    margins the aligned loss is soon that of the m samples with the least, so the growth rate is the least margin and
    not, say, the mean one.

    >>> round(log_loss_ratio_limit(torch.tensor([[3.0, 1.0], [0.0, 4.0]]), torch.tensor([1, 1]), k=10), 3)
    42.996
    """
    beta, alpha = (margin.double() for margin in margins(logits, y))
    least = alpha.min()
    return math.log(k * float(beta.sum())) - math.log(int((alpha == least).sum())) + float(least) * k


def log_gradient_norms(logits: Tensor, y: Tensor, jacobian: Tensor, k: float) -> Tensor:
    """Log norm of each sample's loss gradient with respect to a subnetwork's parameters (Eq. 9 to 12).

    log |k sum_j (pi_j - [j = y]) grad f[j]| with pi = softmax(k f); ``jacobian`` (samples, classes, parameters) holds
    grad f[j]. A gradient of zero gives -inf.

    >>> two_way = torch.tensor([[[1.0], [-1.0]]])
    >>> round(log_gradient_norms(torch.tensor([[0.0, 0.0]]), torch.tensor([0]), two_way, k=3).exp().item(), 3)
    3.0
    """
    log_pi = functional.log_softmax(logits.double() * k, dim=1)
    others = functional.one_hot(y, logits.shape[1]) == 0
    # pi_y - 1 is minus the sum of the others: sum_{j != y} pi_j (grad f[j] - grad f[y]). The largest pi_j is taken out.
    log_pi = log_pi.masked_fill(~others, -math.inf)
    largest = log_pi.max(dim=1).values
    weight = (log_pi - largest[:, None]).exp()
    jacobian = jacobian.double()
    away = jacobian - jacobian[torch.arange(len(y)), y][:, None]
    norms: Tensor = torch.linalg.vector_norm((weight[:, :, None] * away).sum(1), dim=1)
    return math.log(k) + largest + norms.log()


def log_gradient_ratio(logits: Tensor, y: Tensor, core: Tensor, spurious: Tensor, k: float) -> float:
    """Log of the summed gradient norms of the spurious over the core subnetwork (Proposition 2, Eq. 8).

    ``core`` and ``spurious`` are the jacobians of `log_gradient_norms` for the two.
    """
    top, bottom = (torch.logsumexp(log_gradient_norms(logits, y, part, k), 0) for part in (spurious, core))
    return float(top - bottom)


def gradient_ratio_rate(logits: Tensor, y: Tensor) -> float:
    """The growth rate of Proposition 2: `log_gradient_ratio` tends to a line in k of this slope (Eq. 20).

    Two corrections to the proof, both tested:

    - It needs Definition 1's "the core margin's gradient is about 0" on conflicting samples to be exactly 0 (Eq. 14).
      If it is eps there, the ratio stops growing near k = log(1 / eps) / rate and tends to the constant
      sum |grad_s (f[b] - f[y])| / sum |eps| over the conflicting samples.
    - With more than two classes the conflicting samples still pull on the core through the third class (Eq. 13 drops
      this): by k e^(-gamma k), gamma the lead of the predicted class over the best class that is neither it nor y. The
      rate is the smaller of the least aligned margin and the least gamma.

    >>> gradient_ratio_rate(torch.tensor([[3.0, 1.0], [0.0, 4.0]]), torch.tensor([1, 1]))
    4.0
    >>> gradient_ratio_rate(torch.tensor([[3.0, 1.0, 2.5], [0.0, 4.0, -9.0]]), torch.tensor([1, 1]))
    0.5
    """
    other = logits.scatter(1, y[:, None], -math.inf)
    top = other.topk(min(2, other.shape[1]), dim=1).values
    right = logits.gather(1, y[:, None])[:, 0] - top[:, 0]
    _require_both_kinds(right)
    lead = (top[:, 0] - top[:, 1])[right < 0]  # infinite with two classes: the second of `other` is -inf
    return float(torch.minimum(right[right > 0].min(), lead.min()))
