"""Input gradients in batches."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def input_gradients(model: nn.Module, x: Tensor, *, target: Tensor | None = None, create_graph: bool = False) -> Tensor:
    """dS/dx, of the shape of ``x``, where S is the logit of class ``target`` (None: of the class predicted).

    With ``create_graph`` the result can itself be differentiated with respect to the parameters. The model runs in its
    current mode, because a loss on these gradients is computed in training mode; there, batch norm makes each sample's
    logit depend on the whole batch. The parameters' own gradients are left alone.
    """
    with torch.inference_mode(False), torch.enable_grad():
        x = x.detach().clone().requires_grad_()  # a clone, since tensors made in inference mode cannot have gradients
        logits: Tensor = model(x)
        target = logits.argmax(1) if target is None else target
        score = logits.gather(1, target.unsqueeze(1)).sum()
        (gradients,) = torch.autograd.grad(score, x, create_graph=create_graph)
    return gradients
