"""Files that are whole or absent: atomic writes, and safetensors with a JSON note."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unspur.core.unfinished import publish, unfinished_file
from unspur.errors import UnspurError, require

if TYPE_CHECKING:  # `unspur --help` must not wait for torch
    from torch import Tensor


def user_path(text: str | Path) -> Path:
    """``text`` as a path, with ``~`` and ``~name`` expanded to home folders; an unknown user is an error."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise UnspurError(f"There is no home folder for the path {text}; write the path out.") from None


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` and move it there only when the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with unfinished_file(path) as temporary:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        publish(temporary, path, 0o666)


def require_writable(path: Path) -> None:
    """Raise an error, before any work is done, if ``path`` cannot be written; its folders are made later, with it."""
    require(not path.is_dir(), f"{path} is a folder; name a file.")
    there = next(folder for folder in path.absolute().parents if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise UnspurError(f"Cannot write {path} ({error.strerror or error}); name another file.") from None


def writable(folder: Path) -> None:
    """Make ``folder``, or say why nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        taken = next(path for path in (folder, *folder.parents) if path.exists())
        raise UnspurError(f"The output folder {taken} is a file; name a folder.") from None
    except OSError as error:
        raise UnspurError(f"Cannot write to {folder.parent} ({error.strerror}); name another folder.") from None
    if not os.access(folder, os.W_OK):
        raise UnspurError(f"Cannot write to {folder} (permission denied); name another folder.")


def in_bytes(count: int) -> str:
    """A number of bytes in a readable form.

    >>> in_bytes(640), in_bytes(7_680), in_bytes(1_300_000_000)
    ('640 bytes', '7.7 kB', '1.3 GB')
    """
    if count < 1000:
        return f"{count} bytes"
    power = next((power for power in (1, 2, 3) if count < 1000 ** (power + 1)), 4)
    return f"{count / 1000**power:.1f} {('kB', 'MB', 'GB', 'TB')[power - 1]}"


def write_text(path: Path, text: str) -> None:
    """Write ``text`` so that ``path`` holds either all of it or what it held before."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def append_text(path: Path, text: str) -> None:
    """Add ``text`` to the end of ``path`` and wait until it is on the disk; a killed process may leave a part of it."""
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as indented JSON; not-a-number is an error here rather than for the reader."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def require_file(path: Path) -> None:
    """Raise an error if ``path`` exists but is no file: reading a pipe would wait, and a device would never end."""
    if not path.is_file() and path.exists():
        raise UnspurError(f"{path} is not a file; restore or delete it.")


def parse_json(text: str, where: str) -> Any:
    """What ``text`` says as JSON; anything else is an error that begins with ``where``.

    >>> parse_json('{"lr": 0.1}', "a.json")
    {'lr': 0.1}
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise UnspurError(f"{where} cannot be read as JSON (it is nested too deeply); restore or delete it.") from None
    except ValueError as error:
        raise UnspurError(f"{where} cannot be read as JSON ({error}); restore or delete it.") from None


def read_json(path: Path) -> Any:
    """Read a JSON file, naming the file when it is not JSON."""
    require_file(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UnspurError(f"{path} does not exist.") from None
    except (ValueError, OSError) as error:
        raise UnspurError(f"{path} cannot be read as JSON ({error}); restore or delete it.") from None
    return parse_json(text, str(path))


def write_tensors(path: Path, tensors: Mapping[str, Tensor], note: Any = None) -> None:
    """Write ``tensors`` as safetensors, with ``note`` as JSON in the header."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    # clone: safetensors refuses tensors that share memory, as tied weights do.
    whole = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    with replacing(path) as temporary:
        try:
            save_file(whole, temporary, metadata={"note": json.dumps(note)})
        except SafetensorError as error:  # such as a full disk
            raise OSError(str(error)) from None


def read_tensors(path: Path) -> tuple[dict[str, Tensor], Any]:
    """Read what ``write_tensors`` wrote: the tensors and the note."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        raise UnspurError(f"{path} does not exist.")
    require_file(path)
    try:
        with safe_open(path, framework="pt") as file:
            note = (file.metadata() or {}).get("note", "null")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is not a dict)
            return tensors, json.loads(note)
    except (SafetensorError, ValueError, OSError, RecursionError) as error:
        raise UnspurError(f"{path} is not a readable safetensors file ({error}); restore or delete it.") from None
