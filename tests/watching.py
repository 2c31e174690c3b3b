"""Look on at a training."""

from unspur.train.moments import Carry


class Watch(Carry):
    """Calls a function after each step."""

    def __init__(self, see):
        self.see = see
