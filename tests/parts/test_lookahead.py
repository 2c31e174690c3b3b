import torch
from torch import nn

from unspur.data.base import Batch, Split
from unspur.parts.lookahead import Lookahead
from unspur.train.moments import Minimised, Moment


def after_step(model, number):
    x = torch.zeros(1, 1)
    batch = Batch(x, torch.zeros(1).long(), torch.zeros(1).long())
    return Moment(model, "", 0, number, Split(x, batch.y), batch, Minimised(torch.zeros(())))


def test_weights_go_a_share_of_the_way_once_in_so_many_steps():
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(10.0)
    follow = Lookahead(model, every=2, share=0.25, device=torch.device("cpu"))
    seen = []
    for number, fast in enumerate((14.0, 18.0, 20.0, 4.0)):
        model.weight.data.fill_(fast)
        follow.see(after_step(model, number))
        seen.append(model.weight.item())
    # 10 + (18 - 10) / 4 = 12, then 12 + (4 - 12) / 4 = 10; in between the fast weights stay
    assert seen == [14.0, 12.0, 20.0, 10.0]


def test_what_is_saved_is_a_copy():
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(1.0)
    follow = Lookahead(model, 1, 0.5, torch.device("cpu"))
    model.weight.data.fill_(5.0)
    assert float(follow.state()["slow"][0]) == 1.0
