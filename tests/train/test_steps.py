import pytest
import torch
from torch import nn

from unspur.core.seeds import seeded
from unspur.data.augment import Augment
from unspur.data.base import Split
from unspur.errors import Diverged, UnspurError
from unspur.parts.pruning import add_gates, kept_ratio, masks_of, sparsity
from unspur.train.losses import cross_entropy
from unspur.train.session import Session
from unspur.train.steps import Draws, Steps, require_one_device, settle_batch_norm, train_steps


def pictures(n=64):
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(0, 256, (n, 3, 6, 6), dtype=torch.uint8, generator=generator)
    return Split(x, torch.randint(0, 2, (n,), generator=generator))


def gated():
    """A network with gates, batch normalisation, dropout and the layout that trainings use."""
    with seeded(0, "network"):
        model = nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2), nn.Flatten(), nn.Linear(64, 2)
        )
    return model.to(memory_format=torch.channels_last)


def learn(session, steps=10, every=4, model=None):
    model = model or gated()
    gates = add_gates(model)

    def objective(net, batch):
        loss = cross_entropy(net(batch.x), batch).mean()
        return {"cross_entropy": loss, "sparsity": 1e-3 * sparsity(gates, "keep")}

    def review(step):
        return {"kept": kept_ratio(masks_of(gates))}

    recipe, draws = Steps(steps=steps, lr=0.3, batch_size=16), Draws(torch.ones(64))
    train_steps(
        model, pictures(), recipe, draws, objective, stage="masks", seed=3, session=session, review=review, every=every
    )
    return model


def test_samples_are_drawn_by_their_shares():
    drawn = Draws(torch.tensor([0.0, 0.6, 0.1, 0.3, 0.0]))(20_000, torch.Generator().manual_seed(0))
    share = torch.bincount(drawn, minlength=5) / 20_000
    # the standard error is at most sqrt(0.6 * 0.4 / 20000) = 0.0035; a share of 0 is never drawn
    assert share.tolist() == pytest.approx([0.0, 0.6, 0.1, 0.3, 0.0], abs=0.014)
    assert share[0] == share[4] == 0


@pytest.mark.parametrize("after", [1, 4, 6, 9])
def test_an_interrupted_training_resumes_to_the_same_bits_in_the_middle_of_a_stage(after, tmp_path):
    whole = Session()
    expected = learn(whole).state_dict()

    class Interrupt(Exception):
        pass

    def stop(stage, done):
        if done >= after / 10:
            raise Interrupt

    with pytest.raises(Interrupt):
        learn(Session(folder=tmp_path, progress=stop))
    assert (tmp_path / "checkpoints" / "masks.safetensors").exists() == (after >= 4)
    resumed = Session(folder=tmp_path)
    for name, value in learn(resumed).state_dict().items():
        assert torch.equal(value, expected[name]), name
    assert resumed.history == whole.history


class Watched(nn.Module):
    """Remembers what it was shown."""

    def __init__(self):
        super().__init__()
        self.norm, self.seen = nn.BatchNorm2d(1), []

    def forward(self, x):
        self.seen.append(x.detach().clone())
        return self.norm(x).flatten(1)[:, :2]


def left_half(augment):
    """Images that are white on their left half: mirrored ones are white on the right."""
    x = torch.zeros(8, 1, 2, 4, dtype=torch.uint8)
    x[..., :2] = 255
    return Split(x, torch.arange(8) % 2, augment=augment)


def mirrored(seen):
    return torch.cat(seen)[:, 0, 0, 3].mean().item()


@pytest.mark.parametrize(("augment", "share"), [(None, 0.0), (Augment(), 0.0), (Augment(flip=True), 0.5)])
def test_training_images_are_augmented_and_batch_norm_is_measured_on_such_images(augment, share):
    model, draws = Watched(), Draws(torch.ones(8))

    def objective(net, batch):
        return {"cross_entropy": cross_entropy(net(batch.x), batch).mean()}

    train_steps(
        model,
        left_half(augment),
        Steps(steps=40, batch_size=16),
        draws,
        objective,
        stage="s",
        seed=0,
        session=Session(),
    )
    # 640 images, each mirrored with probability 1/2: the standard error is 0.02
    assert mirrored(model.seen) == pytest.approx(share, abs=0.08)
    model.seen.clear()
    settle_batch_norm(model, left_half(augment), draws, 16, seed=0, session=Session())
    assert len(model.seen) == 50 and mirrored(model.seen) == pytest.approx(share, abs=0.08)


def test_terms_and_the_review_are_logged_every_so_many_steps_and_at_the_end():
    session = Session()
    learn(session)
    lines = session.history["masks"]
    assert [line["step"] for line in lines] == [4, 8, 10]
    for line in lines:
        assert line["loss"] == pytest.approx(line["cross_entropy"] + line["sparsity"])
        assert 0 < line["kept"] <= 1


def test_progress_ends_at_one():
    seen = []
    learn(Session(progress=lambda stage, done: seen.append((stage, done))))
    assert seen[-1] == ("masks", 1.0) and len(seen) == 10


def test_a_loss_that_is_not_finite_is_a_divergence_that_names_the_step():
    model = nn.Linear(2, 2)
    split = Split(torch.full((4, 2), torch.inf), torch.zeros(4, dtype=torch.long))
    recipe = Steps(steps=3, batch_size=2)
    with pytest.raises(Diverged, match="step 0 of stage 'tuning'"):
        train_steps(
            model,
            split,
            recipe,
            Draws(torch.ones(4)),
            lambda net, batch: {"cross_entropy": cross_entropy(net(batch.x), batch).mean()},
            stage="tuning",
            seed=0,
            session=Session(),
        )


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"lr": 0.0}, {"lr": float("nan")}, {"batch_size": 1}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(UnspurError, match=f"steps.{next(iter(wrong))} must be"):
        Steps(**wrong)


def test_several_devices_are_refused():
    session = Session()
    session.fabric = type("Two", (), {"world_size": 2})()
    with pytest.raises(UnspurError, match="DCWP runs on one device, but got 2; use --devices 1"):
        require_one_device(session, "DCWP")


def test_batch_norm_is_measured_on_the_samples_as_they_are_drawn():
    model = nn.Sequential(nn.BatchNorm1d(1), nn.Dropout(0.5))
    split = Split(torch.tensor([[0.0], [10.0]]), torch.tensor([0, 1]))
    settle_batch_norm(model, split, Draws(torch.tensor([0.2, 0.8])), 256, seed=0, session=Session())
    # mean 0.8 * 10 = 8, variance 0.8 * 0.2 * 100 = 16; the standard errors over 50 * 256 draws are 0.035 and 0.25
    assert float(model[0].running_mean) == pytest.approx(8, abs=0.15)
    assert float(model[0].running_var) == pytest.approx(16, abs=0.5)
    assert model[0].momentum == 0.1 and not model[0].training
