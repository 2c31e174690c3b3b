"""Label images and die by SIGKILL at ten moments, each time going on: python killed.py RUN IMAGES OUT.

Prints how each process ended. They are forks of one that has imported everything and computed nothing.
"""

import json
import os
import signal
import sys
from pathlib import Path

from unspur.practice.predict.predict import Wanted, predict_into
from unspur.practice.predict.row_file import RowFile

WRITE = RowFile._write


def die(moment: int) -> None:
    """Arrange that this process dies: before, in the middle of and after a write, of the head and of later rows."""
    calls = []

    def write(self, data):
        calls.append(data)
        last = len(calls) == (1 if moment < 3 else 2)
        if last and moment % 3 == 1:
            os.write(self._descriptor, data[: len(data) // 2])
        if not last or moment % 3 == 2:
            WRITE(self, data)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)

    RowFile._write = write


if __name__ == "__main__":
    run, images, out = sys.argv[1:]
    codes = []
    for moment in [*range(10), None]:
        child = os.fork()
        if child == 0:
            if moment is not None:
                die(moment)
            predict_into(Path(run), (images,), Wanted(batch=1), Path(out), resume=True)
            os._exit(0)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print(json.dumps(codes))
