"""A headless Chromium that tests can ask: what went wrong on this page, what does this script find there?

Spoken to through its own debugging protocol over a pair of pipes, so that the page is tried as it is, byte for byte.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
]

# Chromium reads commands from file 3 and answers on file 4; whatever numbers the pipes have here, it gets them there.
LAUNCH = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""

LOOK = """(async () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  const images = [...document.images];
  await Promise.allSettled(images.map((image) => image.decode()));
  const page = document.documentElement;
  return {
    images: images.length,
    broken: images.filter((image) => !image.naturalWidth).length,
    overflow: page.scrollWidth - innerWidth,
    found: await (async () => { %s })(),
  };
})()"""

SECONDS = 60  # longer than anything here takes on a busy machine


@dataclass(frozen=True)
class Seen:
    """What the browser saw of a page."""

    images: int
    broken: int  # images that could not be decoded
    overflow: int  # pixels by which the page is wider than its window
    found: Any = None  # what the test's script returned
    requests: list[str] = field(default_factory=list)  # everything asked for that is not in the page itself
    problems: list[str] = field(default_factory=list)  # errors and warnings, the browser's own included


class Browser:
    """One Chromium process; pages are opened in it one after the other."""

    def __init__(self, folder: Path) -> None:
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        launch = [sys.executable, "-c", LAUNCH, str(commands), str(answers)]
        self._log = folder / "browser.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*launch, chromium(), *FLAGS, f"--user-data-dir={folder / 'profile'}"],
                pass_fds=(commands, answers),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        os.close(commands)
        os.close(answers)
        self._buffer, self._number, self._events = b"", 0, list[dict[str, Any]]()

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._commands)  # at the end of its commands Chromium ends, too
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)

    def open(self, page: Path, *, query: str = "", script: str = "", width: int = 1200, dark: bool = False) -> Seen:
        """Open ``page`` in a window ``width`` pixels wide and run ``script``, a function's body, in it."""
        address = page.as_uri() + query
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{part}.enable", session)
        window = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", session, **window)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", session, features=[scheme])
        self._events.clear()
        self._call("Page.navigate", session, url=address)
        self._wait_for("Page.loadEventFired")
        answer = self._call(
            "Runtime.evaluate", session, expression=LOOK % script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        asked = [event["params"]["request"]["url"] for event in self._named("Network.requestWillBeSent")]
        requests = [url for url in asked if not url.startswith("data:") and url != address]
        problems = [json.dumps(event["params"]) for event in self._events if _is_problem(event)]
        self._call("Target.closeTarget", targetId=target)
        return Seen(**answer["result"]["value"], requests=requests, problems=problems)

    def _call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self._events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def _wait_for(self, name: str) -> None:
        while not self._named(name):
            self._events.append(self._read())

    def _named(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self._events if event.get("method") == name]

    def _read(self) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, end - time.monotonic()))
            part = os.read(self._answers, 1 << 16) if ready else b""
            assert part, f"the browser does not answer: {self._log.read_text(errors='replace')[-2000:]}"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message


def _is_problem(event: dict[str, Any]) -> bool:
    match event:
        case {"method": "Runtime.exceptionThrown"}:
            return True
        case {"method": "Runtime.consoleAPICalled", "params": {"type": kind}}:
            return kind in ("error", "warning", "assert")
        case {"method": "Log.entryAdded", "params": {"entry": {"level": level}}}:
            return level in ("error", "warning")
    return False


def chromium() -> str:
    """Where Chromium is; without one a test is skipped, but on CI it fails."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    reason = "no Chromium on this machine; install the package chromium to run the tests of the page"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
