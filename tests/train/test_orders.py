import pytest
import torch
from torch import nn

from unspur.core.seeds import seeded
from unspur.data.base import Split
from unspur.errors import Diverged, UnspurError
from unspur.parts.pruning import add_gates, kept_ratio, masks_of, sparsity
from unspur.train.loop import train
from unspur.train.losses import cross_entropy
from unspur.train.moments import Carry, Minimised
from unspur.train.orders import Draws, Even, Passes, Place, Turns, equal_shares
from unspur.train.recipe import SGD, Adam, Steps
from unspur.train.schedules import Cosine
from unspur.train.session import Session
from watching import Watch


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


class Kept(Carry):
    def __init__(self, gates):
        self.gates = gates

    def figures(self):
        return {"kept": kept_ratio(masks_of(self.gates))}


def learn(session, steps=10, every=4):
    session.seed, model = 3, gated()
    gates = add_gates(model)

    def objective(net, batch, step):
        terms = {
            "cross_entropy": cross_entropy(net(batch.x), batch).mean(),
            "sparsity": 1e-3 * sparsity(gates, "keep"),
        }
        return Minimised(sum(terms.values()), logged=terms)

    order = Draws(torch.ones(64), steps, every)
    recipe = Adam(lr=0.3, batch_size=16)
    train(
        model, pictures(), recipe, stage="masks", session=session, objective=objective, order=order, carry=[Kept(gates)]
    )
    return model


def plain(net, batch, step):
    return Minimised(cross_entropy(net(batch.x), batch).mean())


def test_samples_are_drawn_by_their_shares():
    drawn = Draws(torch.tensor([0.0, 0.6, 0.1, 0.3, 0.0])).sample(20_000, torch.Generator().manual_seed(0))
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
    assert (tmp_path / "checkpoints" / "masks.safetensors").exists() == (after > 4)
    resumed = Session(folder=tmp_path)
    for name, value in learn(resumed).state_dict().items():
        assert torch.equal(value, expected[name]), name
    assert resumed.history == whole.history


def test_terms_and_figures_are_logged_every_so_many_steps_and_at_the_end():
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
    assert seen[9] == ("masks", 1.0) and [stage for stage, _ in seen].count("masks") == 10
    assert seen[-1] == ("masks: batch norm", 1.0)


def test_a_loss_that_is_not_finite_is_a_divergence_that_names_the_step():
    split = Split(torch.full((4, 2), torch.inf), torch.zeros(4, dtype=torch.long))
    order = Draws(torch.ones(4), steps=3)
    with pytest.raises(Diverged, match="step 0 of stage 'tuning'"):
        train(
            nn.Linear(2, 2), split, Adam(batch_size=2), stage="tuning", session=Session(), objective=plain, order=order
        )


def test_without_a_number_of_steps_draws_take_as_many_as_passes_and_log_as_often():
    # 64 samples in batches of 16: four steps a round, three rounds
    assert Draws(torch.ones(64)).rounds(64, SGD(epochs=3, batch_size=16), 1) == [4, 4, 4]
    assert Passes().rounds(64, SGD(epochs=3, batch_size=16), 1) == [4, 4, 4]


def test_schedules_work_where_steps_are_counted():
    rates = []
    order, recipe = Draws(torch.ones(64), steps=4), SGD(lr=1.0, epochs=1, batch_size=16, schedule=Cosine())
    train(
        gated(),
        pictures(),
        recipe,
        stage="s",
        session=Session(),
        objective=plain,
        order=order,
        carry=[Watch(lambda moment: rates.append(moment.step))],
    )
    session = Session()
    order = Draws(torch.ones(64), steps=4, every=1)
    train(gated(), pictures(), recipe, stage="s", session=session, objective=plain, order=order)
    # half a cosine over four steps: 1, 0.85, 0.5, 0.15
    assert [line["lr"] for line in session.history["s"]] == pytest.approx([1.0, 0.8536, 0.5, 0.1464], abs=1e-4)
    assert rates == [0, 1, 2, 3]


def test_passes_show_each_sample_as_often_as_they_are_told():
    seen = []
    times = torch.ones(64, dtype=torch.long)
    times[5] = 4
    watch = Watch(lambda moment: seen.extend(moment.batch.index.tolist()))
    recipe = SGD(epochs=1, batch_size=16)
    train(gated(), pictures(), recipe, stage="s", session=Session(), order=Passes(times), carry=[watch])
    assert len(seen) == 67 and seen.count(5) == 4 and set(seen) == set(range(64))


def test_equal_shares_draw_a_rare_group_as_often_as_a_frequent_one():
    group = torch.tensor([0] * 60 + [1] * 4)
    drawn = Draws(equal_shares(group)).sample(10_000, torch.Generator().manual_seed(0))
    # the standard error is 0.005
    assert float(group[drawn].double().mean()) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"lr": 0.0}, {"lr": float("nan")}, {"batch_size": 1}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(UnspurError, match=f"steps.{next(iter(wrong))} must be"):
        Steps(**wrong)


def place(group, batch_size, stage="training"):
    data = Split(torch.zeros(len(group), 1), torch.zeros(len(group)).long())
    return Place(data, batch_size, stage, Session())


def test_even_batches_hold_as_many_of_every_group_to_within_one_whatever_their_sizes():
    group = torch.tensor([0] * 90 + [1] * 9 + [2])
    order, extra = Even(group), torch.zeros(3)
    for step in range(200):
        counts = torch.bincount(group[order.index(place(group, 8), step)], minlength=3)
        assert counts.min() == 2 and counts.max() == 3
        extra += counts - 2
    assert extra.min() > 100  # 200 batches have two groups with one more each; none is always left out


def test_even_batches_draw_every_sample_of_a_group_alike_often():
    group = torch.tensor([1, 0, 1, 0, 1])
    drawn = torch.cat([Even(group).index(place(group, 10), step) for step in range(400)])
    counts = torch.bincount(drawn, minlength=5).double()
    assert torch.allclose(counts[[1, 3]] / counts.sum(), torch.full((2,), 0.25, dtype=torch.double), atol=0.03)
    assert torch.allclose(counts[[0, 2, 4]] / counts.sum(), torch.full((3,), 1 / 6, dtype=torch.double), atol=0.03)


def test_turns_take_every_group_once_before_any_comes_again_in_an_order_that_changes():
    group = torch.tensor([0, 1, 2] * 10)
    order = Turns(group)
    seen = []
    for step in range(30):
        (own,) = group[order.index(place(group, 4), step)].unique().tolist()
        seen.append(own)
    turns = [tuple(seen[begin : begin + 3]) for begin in range(0, 30, 3)]
    assert all(sorted(turn) == [0, 1, 2] for turn in turns) and len(set(turns)) > 1


def test_turns_end_with_a_whole_turn():
    # 30 samples in batches of 4, twice: rounds of 8 steps, and one more step makes 17 steps 18
    assert Turns(torch.tensor([0, 1, 2] * 10), steps=17).rounds(30, SGD(batch_size=4), 1) == [8, 8, 2]
    assert Turns(torch.tensor([0, 1, 2] * 10)).rounds(30, SGD(epochs=0), 1) == []
