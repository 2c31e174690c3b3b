"""A model with what another program would have to do around it: pixels before, probabilities and the rule after."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

OUTPUTS = ("logits", "probabilities")
RULE_OUTPUTS = ("label", "confidence", "abstain")
BEFORE = "logits_before"  # of the model before the repair, where the rule asks it


class Deployed(nn.Module):
    """From RGB bytes (n, height, width, 3) to logits and calibrated probabilities.

    With a threshold also to the label, its confidence and whether to abstain, by the rule of predict/abstention.py:
    abstain below the threshold, or if the model before the repair predicts another class.
    """

    def __init__(
        self,
        model: nn.Module,
        channels: int,
        temperatures: Sequence[float] = (1.0,),
        before: nn.Module | None = None,
        threshold: float | None = None,
    ) -> None:
        super().__init__()
        self.model, self.before = model, before if threshold is not None else None
        self._channels, self._temperatures, self._threshold = channels, tuple(temperatures), threshold
        self.eval()

    @property
    def outputs(self) -> tuple[str, ...]:
        """What ``forward`` returns, by name."""
        if self._threshold is None:
            return OUTPUTS
        return (*OUTPUTS, *RULE_OUTPUTS, BEFORE) if self.before is not None else OUTPUTS + RULE_OUTPUTS

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        x = images.permute(0, 3, 1, 2).to(torch.float32) / 255
        if self._channels == 1:
            x = x.mean(1, keepdim=True)
        logits = self.model(x)
        probability = (logits / self._temperatures[0]).softmax(1)
        if self._threshold is None:
            return logits, probability
        confidence, label = probability.max(1)
        if self.before is None:
            return logits, probability, label, confidence, confidence < self._threshold
        before = self.before(x)
        earlier = (before / self._temperatures[1]).softmax(1)
        confidence = confidence * earlier.gather(1, label.unsqueeze(1)).squeeze(1)
        abstain = (before.argmax(1) != label) | (confidence < self._threshold)
        return logits, probability, label, confidence, abstain, before
