"""What a machine has for unspur, for people."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from unspur.cli.show.console import console
from unspur.core.files import in_bytes
from unspur.practice.doctor import Device, Diagnosis, Extra, Files

SHOWN = ("torch", "torchvision", "numpy", "pillow", "safetensors", "typer")  # of the packages, unless one does not fit

MOST = 2  # missing packages of an extra that are named; --json names all


def print_diagnosis(found: Diagnosis) -> None:
    """A block for each question: what runs, on what, where things are kept, which data, which extras."""
    out = console()
    commit = f" ({found['commit']})" if found["commit"] else ""
    packages = [f"{package['name']} {package['found']}" for package in found["packages"] if package["name"] in SHOWN]
    devices = [_device(device) for device in found["devices"]]
    cache = found["cache"]
    lines = {
        "unspur": f"{found['version']}{commit}, Python {found['python']}, {found['platform']}",
        "packages": ", ".join(packages) or "unknown",
        "devices": f"{', '.join(devices)}; {found['threads']} thread{'' if found['threads'] == 1 else 's'}",
        "cache": f"{cache['folder']}: {in_bytes(cache['bytes'])} used, {in_bytes(cache['free'])} free",
        "data": found["data_dir"] or "the cache alone (--data-dir or UNSPUR_DATA names another folder)",
    }
    for heading, text in lines.items():
        out.print(f"{heading:<9} {text}", highlight=False, markup=False)
    out.print(_extras(found["extras"]))
    if any(extra["missing"] for extra in found["extras"]):
        out.print("An extra is installed by pip install 'unspur[NAME]'.", highlight=False, markup=False)
    out.print(_data(found["data"]))
    for problem in found["problems"]:
        out.print(f"Problem: {problem}", highlight=False, markup=False)
    if not found["problems"]:
        out.print("Nothing that unspur itself needs is missing.", highlight=False)


def _device(device: Device) -> str:
    """Its name and what to know of it, such as: cpu (25.3 GB, slow with precision=bf16)."""
    known = [in_bytes(device["memory"])] if device["memory"] else []
    known += ["slow with precision=bf16"] if device["bfloat16"] is False else []
    return device["name"] + (f" ({', '.join(known)})" if known else "")


def _extras(extras: list[Extra]) -> Table:
    table = Table("extra", "state", "for")
    for extra in extras:
        lacking = [escape(f"{package['name']}{package['needs']}") for package in extra["missing"]]
        more = f" and {len(lacking) - MOST} more" if len(lacking) > MOST else ""
        state = f"missing: {', '.join(lacking[:MOST])}{more}" if lacking else "here"
        table.add_row(extra["name"], state, extra["purpose"])
    return table


def _data(data: list[Files]) -> Table:
    table = Table("files", "state", "data sets")
    for files in data:
        state = f"in {files['folder']}" if files["state"] == "whole" else f"{files['state']}: {files['get']}"
        table.add_row(escape(files["title"]), escape(state), ", ".join(files["sets"]))
    return table
