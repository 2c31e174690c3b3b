"""Attributes of images that nobody labelled, learnt from a few that somebody did (SSA, arXiv:2204.02070)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from unspur.core.seeds import stream
from unspur.data.base import Batch, Source, Split, groups_of, stratified_split
from unspur.parts.inferred_groups import BestRound, all_logits, label_groups
from unspur.parts.new_heads import with_new_head
from unspur.train.loop import Objective
from unspur.train.loop import train as train_model
from unspur.train.moments import Minimised
from unspur.train.orders import Even
from unspur.train.recipe import Optimiser
from unspur.train.session import Session


class Joined(NamedTuple):
    """Two sources, one after the other; neither is read as a whole."""

    first: Source
    second: Source

    @property
    def shape(self) -> torch.Size:
        return torch.Size([self.first.shape[0] + self.second.shape[0], *self.first.shape[1:]])

    @property
    def dtype(self) -> torch.dtype:
        return self.first.dtype

    def __getitem__(self, index: Tensor, /) -> Tensor:  # type: ignore[override]
        count = self.first.shape[0]
        later = index >= count
        found = torch.empty(len(index), *self.shape[1:], dtype=self.dtype)
        found[~later], found[later] = self.first[index[~later]], self.second[index[later] - count]
        return found


def attribute_of(split: Split) -> Tensor:
    """One number, from 0, for the attributes of each sample, whatever its label."""
    columns = torch.stack(list(split.attributes.values()), 1)
    attribute: Tensor = columns.unique(dim=0, return_inverse=True)[1]
    return attribute


def confident(chance: Tensor, y: Tensor, labelled: Tensor, smallest: int, least: float) -> Tensor:
    """Which samples get their predicted attribute as a label, given the *probabilities* of attributes.

    ``labelled`` counts the batch's labelled samples of each (label, attribute) group; ``smallest`` is the number of the
    group that is smallest in all of the labelled data, of which a batch may have none. A sample must have at least the
    probability ``least``. In the smallest group all such samples count; in the others the surest of them, until the
    group is as large as the smallest one has become.
    """
    sure, guess = chance.max(1)
    attributes = labelled.shape[1]
    group, known = y * attributes + guess, labelled.flatten()
    able = sure >= least
    found = torch.bincount(group[able], minlength=len(known))
    room = (known[smallest] + found[smallest] - known).clamp(min=0)
    room[smallest] = found[smallest]
    order = torch.argsort(sure.masked_fill(~able, -1.0), descending=True, stable=True)
    place = (functional.one_hot(group[order], len(known)).cumsum(0) - 1).gather(1, group[order][:, None]).squeeze(1)
    taken = torch.zeros_like(able)
    taken[order] = place < room[group[order]]
    return taken & able


def spreading(y: Tensor, attribute: Tensor, known: Tensor, count: int, least: float) -> Objective:
    """Cross-entropy of labelled attributes, plus that of other samples' predicted attributes where these are sure."""
    classes = int(y.max()) + 1
    sizes = torch.bincount((y * count + attribute)[known], minlength=classes * count)
    smallest = int(sizes.masked_fill(sizes == 0, len(y) + 1).argmin())

    def objective(model: nn.Module, batch: Batch, step: int) -> Minimised:
        logits, index = model(batch.x).float(), batch.index.cpu()
        own = known[index].to(batch.y.device)
        label, truth = (values[index].to(batch.y.device) for values in (y, attribute))
        in_batch = torch.bincount((label * count + truth)[own], minlength=classes * count).reshape(classes, count)
        supervised = functional.cross_entropy(logits[own], truth[own])
        free = logits[~own]
        taken = confident(free.detach().softmax(1), label[~own], in_batch, smallest, least)
        losses = functional.cross_entropy(free, free.detach().argmax(1), reduction="none")
        right = (logits[own].argmax(1) == truth[own]).float().mean()
        logged = {"pseudo": taken.float().mean(), "labelled_accuracy": right}
        return Minimised(supervised + (losses * taken).mean(), logged=logged)

    return objective


def pseudo_attributes(
    model: nn.Module, train: Split, val: Split, folds: int, least: float, recipe: Optimiser, session: Session
) -> Tensor:
    """The attribute of each training sample, predicted by a model that was trained without its fold.

    Half of the validation data is trained on; the other half chooses the round, by its worst group.
    """
    attribute, group = attribute_of(val), groups_of(val).id
    count, seed = int(attribute.max()) + 1, session.seed
    teaching, choosing = stratified_split(group, len(val) // 2, stream(seed, "labelled"))
    fold = torch.randperm(len(train), generator=stream(seed, "folds")) % folds
    judge = replace(val.subset(choosing), y=attribute[choosing], attributes={})
    found = torch.zeros(len(train), dtype=torch.long)
    for number in range(folds):
        rest, teacher = train.subset((fold != number).nonzero().squeeze(1)), val.subset(teaching)
        known = torch.cat([torch.ones(len(teacher)), torch.zeros(len(rest))]).bool()
        truth = torch.cat([attribute[teaching], torch.zeros(len(rest), dtype=torch.long)])
        joined = Split(Joined(teacher.x, rest.x), truth, augment=train.augment)
        network = with_new_head(model, count, seed)
        best = BestRound(network, judge, label_groups(val.y[choosing], attribute[choosing]), session)
        objective = spreading(torch.cat([teacher.y, rest.y]), truth, known, count, least)
        order = Even(known.long())
        train_model(
            network,
            joined,
            recipe,
            stage=f"fold-{number}",
            session=session,
            objective=objective,
            order=order,
            carry=[best],
        )
        best.restore()
        own = (fold == number).nonzero().squeeze(1)
        found[own] = all_logits(network, train.subset(own), session).argmax(1)
    return found
