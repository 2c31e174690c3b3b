import torch
from safetensors import safe_open

from unspur.train.checkpoints import load_state, save_state
from unspur.train.session import Session


def test_an_optimisers_state_comes_back_equal(tmp_path):
    weight = torch.nn.Parameter(torch.ones(3))
    adam = torch.optim.AdamW([weight], lr=0.1)
    weight.sum().backward()
    adam.step()
    save_state(tmp_path / "s.safetensors", {"optimiser": adam.state_dict(), "epoch": 3, "finished": False})
    state = load_state(tmp_path / "s.safetensors")
    assert state["epoch"] == 3 and state["finished"] is False
    fresh = torch.optim.AdamW([weight], lr=0.5)
    fresh.load_state_dict(state["optimiser"])
    ours, theirs = fresh.state_dict(), adam.state_dict()
    assert ours["param_groups"][0]["lr"] == theirs["param_groups"][0]["lr"] == 0.1
    for name in ("exp_avg", "exp_avg_sq", "step"):
        assert torch.equal(ours["state"][0][name], theirs["state"][0][name])


def test_a_long_history_comes_back_and_is_not_in_the_header_which_has_a_limit(tmp_path):
    session = Session(folder=tmp_path)
    session.log("erm", epoch=1, loss_ratios=[0.1234] * 100_000)
    session.save("erm", {"step": 5})
    (file,) = tmp_path.rglob("*.safetensors")
    with safe_open(file, framework="pt") as opened:
        assert len(opened.metadata()["note"]) < 1000
    again = Session(folder=tmp_path)
    assert again.load("erm") == {"step": 5} and again.history == session.history
