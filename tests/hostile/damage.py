"""Ways to damage what is stored: JSON, safetensors, tables, images, and the files themselves."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

from hostile.world import own
from unspur.runs.config import key_of

VALUES: list[Any] = [
    None, True, False, [], {}, "", "x", "\x1b[2J", "../../etc/passwd", -1, 0, 1.5, 10**30, -(10**30), 1e308, [1], [[]],
    ["a", 1], {"a": 1}, {"": None}, "9" * 400, [None] * 50, float("inf"), float("nan"), {"name": "erm"}, {"name": []},
]  # fmt: skip


def damage(thing: Path, draw: random.Random) -> str:
    """Damage one file of ``thing``, or ``thing`` if it is a file; returns what was done."""
    # Sorted: the order of a folder's files is not the same everywhere, and a seed must mean one case.
    files = (
        sorted(p for p in thing.resolve().rglob("*") if p.is_file() and p.name != ".lock")
        if thing.is_dir()
        else [thing]
    )
    path = draw.choice(files)
    ways = [_replaced, _bytes]
    if path.suffix == ".json":
        ways = [_json] * 6 + [_json_text] + ways
    elif path.suffix == ".jsonl":
        ways = [_json_line] * 4 + ways
    elif path.suffix == ".safetensors":
        ways = [_header] * 3 + ways
    elif path.suffix == ".csv":
        ways = [_table] * 5 + ways
    elif path.suffix == ".png":
        ways = [_image] * 3 + ways
    return f"{path.name}: {draw.choice(ways)(path, draw)}"


def foreign(folder: Path, draw: random.Random) -> str:
    """Change the configuration of a run and rename its folder for it, as a stranger would who makes one up."""
    real = folder.resolve()
    path = real / "config.json"
    config = json.loads(path.read_text())
    done = _changed(config, draw)
    path.unlink()
    path.write_text(json.dumps(config))
    key = key_of(config)
    result = json.loads((real / "result.json").read_text())
    (real / "result.json").unlink()
    (real / "result.json").write_text(json.dumps(result | {"key": key}))
    renamed = real.rename(real.with_name(f"{folder.name}-{key}"))
    folder.unlink()
    folder.symlink_to(renamed.name)
    return f"config.json, with its key: {done}"


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in ``value`` with every key of it."""
    if not isinstance(value, dict | list):
        return []
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    return [(value, key) for key in keys] + [place for key in keys for place in _places(value[key])]


def _changed(value: Any, draw: random.Random) -> str:
    """Change one place of ``value``."""
    container, key = draw.choice(_places(value))
    if draw.random() < 0.2:
        del container[key]
        return f"without {key!r}"
    if isinstance(container, dict) and draw.random() < 0.1:
        container[draw.choice(["", "x", "name", "__class__", "\x1b[2J"])] = container.pop(key)
        return f"{key!r} renamed"
    container[key] = draw.choice(VALUES)
    return f"{key!r} is {container[key]!r}"


def _json(path: Path, draw: random.Random) -> str:
    value = json.loads(path.read_text())
    if not _places(value) or draw.random() < 0.1:
        value, done = (new := draw.choice(VALUES)), f"all of it is {new!r}"
    else:
        done = _changed(value, draw)
    own(path).write_text(json.dumps(value))
    return done


def _json_text(path: Path, draw: random.Random) -> str:
    name, text = draw.choice([
        ("deep", "[" * 100_000 + "]" * 100_000),
        ("deep objects", '{"a":' * 100_000 + "1" + "}" * 100_000),
        ("huge number", "9" * 10_000),
        ("infinity", '{"seed": Infinity}'),
        ("bytes", "\ufeff{}"),
        ("twice", path.read_text() * 2),
        ("duplicate keys", '{"a": 1, "a": 2}'),
    ])  # fmt: skip
    own(path).write_text(text)
    return name


def _json_line(path: Path, draw: random.Random) -> str:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    done = _changed(lines, draw)
    own(path).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return done


def _header(path: Path, draw: random.Random) -> str:
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[:8], "little")
    kind = draw.choice(["length", "flip", "dtype", "names", "numbers"])
    if kind == "length":
        content[:8] = draw.choice([0, 1, 2**63, len(content), len(content) * 2]).to_bytes(8, "little")
    elif kind == "flip":
        content[8 + draw.randrange(size)] ^= 1 << draw.randrange(8)
    elif kind == "numbers":
        for place in range(8 + size, len(content)):
            content[place] = 0xFF  # not a number, everywhere
    else:
        header = content[8 : 8 + size].decode()
        was, now = ('"F32"', '"I64"') if kind == "dtype" else ("weight", "wait")
        made = header.replace(was, now).encode()
        content[: 8 + size] = len(made).to_bytes(8, "little") + made
    own(path).write_bytes(content)
    return f"header, {kind}"


def _table(path: Path, draw: random.Random) -> str:
    lines = path.read_text().splitlines()
    row = draw.randrange(1, len(lines)) if len(lines) > 1 else 0
    cells = lines[row].split(",")
    column = draw.randrange(len(cells))
    cells[column] = draw.choice(
        ["", "..", "../file", "/etc/passwd", "x" * 10_000, '"', "\x00", "\x1b[2J", "a\rb", "photos"]
    )
    changes = {
        "cell": lambda: lines.__setitem__(row, ",".join(cells)),
        "short row": lambda: lines.__setitem__(row, cells[0]),
        "long row": lambda: lines.__setitem__(row, lines[row] + ",x,y,z"),
        "no rows": lambda: lines.__delitem__(slice(1, None)),
        "no header": lambda: lines.__delitem__(0),
        "double header": lambda: lines.__setitem__(0, "label,label"),
        "empty header": lambda: lines.__setitem__(0, ","),
        "double row": lambda: lines.insert(row, lines[row]),
        "quote": lambda: lines.__setitem__(row, '"' + lines[row]),
        "giant field": lambda: lines.__setitem__(row, "x" * 200_000 + ",cat"),
    }
    kind = draw.choice(list(changes))
    changes[kind]()
    own(path).write_text("\n".join(lines) + "\n", newline="")
    return kind


def _image(path: Path, draw: random.Random) -> str:
    content = path.read_bytes()
    kind = draw.choice(["cut", "bomb", "text", "chunk", "other"])
    if kind == "bomb":  # says that it is 60,000 x 60,000 pixels
        content = content[:16] + (60_000).to_bytes(4, "big") * 2 + content[24:]
    made = {
        "cut": content[: len(content) // 2],
        "bomb": content,
        "text": b"<svg onload=alert(1)>",
        "other": b"GIF89a\x00",
    }
    flipped = bytearray(content)
    flipped[draw.randrange(len(content))] ^= 0xFF
    own(path).write_bytes(made.get(kind, bytes(flipped)))
    return kind


def _bytes(path: Path, draw: random.Random) -> str:
    content = path.read_bytes()
    cut = draw.randrange(len(content)) if content else 0
    kind, made = draw.choice([
        ("empty", b""),
        ("cut", content[:cut]),
        ("zeros", bytes(len(content))),
        ("noise", draw.randbytes(200)),
        ("not UTF-8", content[:cut] + b"\xff\xfe\x80" + content[cut:]),
        ("zero byte", content[:cut] + b"\x00" + content[cut:]),
    ])  # fmt: skip
    own(path).write_bytes(made)
    return kind


def _replaced(path: Path, draw: random.Random) -> str:
    path.unlink()
    kind = draw.choice(["gone", "folder", "loop", "dangling link", "pipe", "unreadable", "device"])
    if kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "dangling link":
        path.symlink_to("nowhere")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "unreadable":
        path.write_bytes(b"x")
        path.chmod(0)
    return kind
