"""Do many runs side by side, those that have ended not again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import NamedTuple

from unspur.core.files import writable
from unspur.core.progress import counting
from unspur.data.files.fetch import DataFiles
from unspur.errors import require, unknown
from unspur.runs.analyze import stored_analysis
from unspur.runs.config import Config
from unspur.runs.engines import ENGINES, Job, Outcome
from unspur.runs.folder import Run
from unspur.runs.machines import say_if_slower
from unspur.runs.result import ENDED


class Many(NamedTuple):
    """Where runs are stored and done, and how many at a time."""

    out: Path
    jobs: int | None = None
    engine: str = "local"
    data_dir: Path | None = None
    analyze: bool = False  # also when they are done

    def do(
        self,
        configs: Sequence[Config],
        what: str,
        *,
        progress: bool = False,
        say: Callable[[str], None] = lambda sentence: None,
        ended: Callable[[Config], None] = lambda config: None,
    ) -> dict[str, Outcome]:
        """Do every run that has not ended and return how each of them did, by its key.

        Runs are the same folders that ``run`` makes, each done on one thread. ``ended`` is called after each.
        """
        every = {config.key: config for config in configs}
        left = [config for config in every.values() if self._unfinished(Run.create(self.out, config))]
        self.require(left)
        if self.engine == "local":  # else it is other machines that train
            say_if_slower({config.precision for config in left}, say)
        writable(self.out)
        data = str(self.data_dir) if self.data_dir else None
        queue = [Job(config.to_json(), str(self.out), data, self.analyze) for config in left]
        outcomes: dict[str, Outcome] = {}
        bar = counting(what, len(every), len(every) - len(left)) if progress else nullcontext(_uncounted)
        with bar as advance, closing(ENGINES[self.engine](queue, self.jobs)) as outcome_of:
            for number, outcome in outcome_of:
                outcomes[left[number].key] = outcome
                if outcome.reason:
                    say(f"{Run.create(self.out, left[number]).folder.name} {outcome.status}: {outcome.reason}")
                ended(left[number])
                advance(1)
        return outcomes

    def require(self, configs: Sequence[Config]) -> None:
        """Load every data set, build every network and ask every method once, so that no run starts that cannot."""
        if self.engine not in ENGINES:
            raise unknown("engine", self.engine, ENGINES)
        require(self.jobs is None or self.jobs >= 1, f"--jobs must be at least 1 but got {self.jobs}.")
        files = DataFiles(self.data_dir)
        for spec in dict.fromkeys(config.data for config in configs):
            data, own = spec.load(files), [config for config in configs if config.data == spec]
            for arch in dict.fromkeys(config.arch for config in own):
                model = arch.build(data)
                for method in dict.fromkeys(config.method for config in own if config.arch == arch):
                    method.require(model, data.train, data.val)

    def _unfinished(self, stored: Run) -> bool:
        result = stored.result()
        if not result or result["status"] not in ENDED:
            return True
        stored.log()  # an error now if it cannot be read, and not when all others have been trained
        return self.analyze and result["status"] == "done" and stored_analysis(stored.folder) is None


def _uncounted(count: int) -> None:
    """Nobody is shown how many runs have ended."""
