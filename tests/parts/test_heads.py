"""The heads trained at once, against torch's own differentiation and optimiser, head by head."""

import pytest
import torch
from torch.nn import functional

from unspur.parts.heads import Eq3, Head, HeadBatch, Pairs
from unspur.parts.opposition import opposition, similarities

SAMPLES, FEATURES, CLASSES = 24, 6, 3
PLAIN = Eq3("saliency", "batch", "mse", False)


def problem(seed=0, dtype=torch.float64):
    """Features, labels, and a student's and a teacher's first head."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=dtype)

    x, y = draw(SAMPLES, FEATURES), torch.randint(CLASSES, (SAMPLES,), generator=generator)
    return x, y, Head(draw(CLASSES, FEATURES), draw(CLASSES)), Head(draw(CLASSES, FEATURES), draw(CLASSES))


def batch_of(x, y, weight=None):
    return HeadBatch(x, functional.one_hot(y, CLASSES).to(x).T, 1.0 if weight is None else weight)


def by_autograd(point, loss, x, y, student, teacher, steps, momentum, weight):
    """One student and its teacher: Eq. 1 to 3 differentiated by torch, and torch's SGD."""
    heads = [[w.clone().requires_grad_() for w in head if w is not None] for head in (student, teacher)]
    optimisers = [torch.optim.SGD(head, lr=point.lr, weight_decay=point.l2, momentum=momentum) for head in heads]
    for _ in range(steps):
        seen, losses = [], []
        for head in heads:
            at = x.clone().requires_grad_()
            logits = functional.linear(at, *head)
            losses.append((weight * functional.cross_entropy(logits, y, reduction="none")).mean())
            if loss.compare == "activations":
                seen.append(similarities(logits))
            else:
                seen.append(torch.autograd.grad(logits.amax(1).sum(), at, create_graph=True)[0])
        apart = opposition(seen[0].detach(), seen[1], loss.over, loss.distance)
        size = (losses[1] / apart).detach() if loss.equal else 1.0
        total = losses[0] + point.lam * losses[1] + (1 - point.lam) * size * apart
        for optimiser in optimisers:
            optimiser.zero_grad()
        total.backward()
        for optimiser in optimisers:
            optimiser.step()
    return [w.detach() for head in heads for w in head]


def check(pairs, *problem):
    for number, point in enumerate(pairs.points):
        ours = [w for head in pairs.heads(number) for w in head if w is not None]
        torch.testing.assert_close(ours, by_autograd(point, *problem), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("compare", ["saliency", "activations"])
@pytest.mark.parametrize("over", ["batch", "sample"])
@pytest.mark.parametrize("distance", ["mse", "l1"])
@pytest.mark.parametrize("equal", [False, True])
def test_every_head_of_the_grid_is_what_autograd_makes_of_it_alone(compare, over, distance, equal):
    x, y, student, teacher = problem()
    weight = torch.linspace(0.5, 1.5, SAMPLES, dtype=x.dtype)  # mean 1
    loss = Eq3(compare, over, distance, equal)
    pairs = Pairs((0.0, 0.3, 1.0), (0.1, 0.01), (1e-4, 0.5), student, teacher, momentum=0.9, loss=loss)
    for _ in range(5):
        pairs.step(batch_of(x, y, weight))
    check(pairs, loss, x, y, student, teacher, 5, 0.9, weight)


def test_heads_without_a_bias_stay_without_one():
    x, y, student, teacher = (part._replace(bias=None) if isinstance(part, Head) else part for part in problem())
    pairs = Pairs((0.3,), (0.1,), (0.0,), student, teacher, momentum=0.0, loss=PLAIN)
    pairs.step(batch_of(x, y))
    check(pairs, PLAIN, x, y, student, teacher, 1, 0.0, torch.ones(SAMPLES, dtype=x.dtype))


def test_one_head_may_have_a_bias_and_the_other_none():
    x, y, student, teacher = problem()
    student = student._replace(bias=None)
    pairs = Pairs((0.3,), (0.1,), (0.1,), student, teacher, momentum=0.9, loss=PLAIN)
    pairs.step(batch_of(x, y))
    pairs.step(batch_of(x, y))
    check(pairs, PLAIN, x, y, student, teacher, 2, 0.9, torch.ones(SAMPLES, dtype=x.dtype))
    assert pairs.heads(0)[0].bias is None


def test_lambda_does_not_touch_the_students():
    x, y, student, teacher = problem()
    pairs = Pairs((0.0, 0.5, 1.0), (0.1, 0.2), (0.0,), student, teacher, momentum=0.0, loss=PLAIN)
    assert len(pairs.points) == 6 and len(pairs.weight) == 2 + 6  # two rates make two students
    pairs.step(batch_of(x, y))
    after = {point: pairs.heads(number) for number, point in enumerate(pairs.points)}
    weights = {rate: [own.weight for (_, lr, _), (own, _) in after.items() if lr == rate] for rate in (0.1, 0.2)}
    assert all(torch.equal(weight, same[0]) for same in weights.values() for weight in same)
    assert not torch.equal(weights[0.1][0], weights[0.2][0])


def test_each_head_sees_its_own_features_alone():
    # The first 6 features are the teacher's, the last 2 the student's: their weights for the others stay 0.
    x, y, _, teacher = problem()
    both = torch.cat([x, x[:, :2].square()], 1)
    sees = torch.tensor([[0.0] * 6 + [1.0] * 2, [1.0] * 6 + [0.0] * 2], dtype=x.dtype)
    wide = Head(functional.pad(teacher.weight, (0, 2)), teacher.bias)
    blank = Head(torch.zeros(CLASSES, 8, dtype=x.dtype), torch.zeros(CLASSES, dtype=x.dtype))
    loss = Eq3("activations", "batch", "mse", False)
    pairs = Pairs((0.5,), (0.1,), (0.01,), blank, wide, momentum=0.9, loss=loss, sees=sees)
    for _ in range(3):  # at first E_s is 0, by which nothing may be divided
        pairs.step(batch_of(both, y))
    student, teacher = pairs.heads(0)
    assert not student.weight[:, :6].any() and student.weight[:, 6:].all()
    assert not teacher.weight[:, 6:].any() and teacher.weight[:, :6].all()


def test_a_head_that_diverges_does_not_touch_the_others():
    x, y, student, teacher = problem(dtype=torch.float32)
    both = Pairs((0.5,), (0.1, 1e30), (1.0,), student, teacher, momentum=0.9, loss=PLAIN)
    alone = Pairs((0.5,), (0.1,), (1.0,), student, teacher, momentum=0.9, loss=PLAIN)
    for _ in range(5):
        both.step(batch_of(x, y))
        alone.step(batch_of(x, y))
    assert both.finite().tolist() == [True, False]
    torch.testing.assert_close(both.heads(0), alone.heads(0))
