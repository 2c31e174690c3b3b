import torch

from unspur.train.checkpoints import load_state, save_state


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
