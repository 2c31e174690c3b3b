"""ULE's second loss: how far a teacher's view is from the opposite of its student's (Eq. 1 and 2)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Scalar = Literal["logit", "probability", "label"]
Over = Literal["batch", "sample"]
Distance = Literal["mse", "l1"]


def scalar_of(logits: Tensor, y: Tensor, scalar: Scalar) -> Tensor:
    """The number that Eq. 1 differentiates for each sample: s(x).

    'logit' is the largest logit, 'probability' the largest probability, 'label' the logit of the label.

    >>> logits = torch.tensor([[1.0, 3.0]]).log()
    >>> [round(float(scalar_of(logits, torch.tensor([0]), kind)), 4) for kind in ("logit", "probability", "label")]
    [1.0986, 0.75, 0.0]
    """
    if scalar == "label":
        return logits.gather(1, y.unsqueeze(1)).squeeze(1)
    return (logits if scalar == "logit" else logits.softmax(1)).amax(1)


def normalised(z: Tensor, over: Over) -> Tensor:
    """N(z) = z / max|z|, the maximum taken over the whole batch or over each sample; a sample of zeros stays zero.

    >>> z = torch.tensor([[1.0, -2.0], [4.0, 0.0]])
    >>> normalised(z, "batch").tolist(), normalised(z, "sample").tolist()
    ([[0.25, -0.5], [1.0, 0.0]], [[0.5, -1.0], [1.0, 0.0]])
    """
    size = z.abs()
    peak = size.amax() if over == "batch" else size.amax(tuple(range(1, z.ndim)), keepdim=True)
    return z / torch.where(peak > 0, peak, 1.0)


def opposition(student: Tensor, teacher: Tensor, over: Over, distance: Distance) -> Tensor:
    """L(-student, teacher): the mean squared (or absolute) difference of N(-student) and N(teacher) (Eq. 2).

    >>> a = torch.tensor([[1.0, -0.5]])
    >>> [float(opposition(a, b, "batch", "mse")) for b in (-3 * a, 0 * a, a)]  # (0, (1 + 0.25)/2, (4 + 1)/2)
    [0.0, 0.625, 2.5]
    """
    apart = normalised(student, over) + normalised(teacher, over)
    return apart.square().mean() if distance == "mse" else apart.abs().mean()


def similarities(activations: Tensor) -> Tensor:
    """E = A A^T: the similarity of every two samples of a batch, whatever the layer's size (section 3.1).

    >>> similarities(torch.tensor([[[1.0], [2.0]], [[0.0], [3.0]]]))
    tensor([[5., 6.],
            [6., 9.]])
    """
    flat = activations.flatten(1)
    return flat @ flat.T
