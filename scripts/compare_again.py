"""Some rows of a stored comparison, run again: they replace the older ones, and all methods are ranked again.

    unspur compare eiil,xrm DATASET ... (with all settings of the stored one) --json > FILE
    python scripts/compare_again.py NAME FILE    # results/NAME.json

Plain training, which every comparison has for its choice without groups, stays as it was stored. So do its seconds:
the cost of the new rows is in terms of the plain training beside them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from result_files import RESULTS, read

from unspur.core.files import write_json
from unspur.runs.compare import ranked
from unspur.runs.entries import PLAIN


def with_rows(stored: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """``stored`` with the rows of ``new`` in place of its own."""
    (block,), (fresh,) = stored["datasets"], new["datasets"]
    same = all(stored[key] == new[key] for key in ("seeds", "candidates")) and block["arch"] == fresh["arch"]
    if not same or block["dataset"] != fresh["dataset"] or new["done"] != new["of"]:
        raise SystemExit("The new comparison is not whole, or of other seeds, candidates, data or network.")
    rows = {row["method"]: row for row in fresh["rows"] if row["method"] != PLAIN}
    if missing := sorted(rows.keys() - {row["method"] for row in block["rows"]}):
        raise SystemExit(f"The stored comparison has no row of {', '.join(missing)}.")
    datasets = [block | {"rows": [rows.get(row["method"], row) for row in block["rows"]]}]
    commits = dict.fromkeys([*stored["commit"].split(", "), *new["commit"].split(", ")])
    command = f"{stored['command']}; then the same with {','.join(rows)}"
    return stored | {
        "command": command,
        "commit": ", ".join(commits),
        "datasets": datasets,
        "ranks": ranked(datasets),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of a comparison in results/, without .json")
    parser.add_argument("new", type=Path, help="what `unspur compare --json` printed")
    args = parser.parse_args()
    new = json.loads(args.new.read_text(encoding="utf-8"))
    write_json(RESULTS / f"{args.name}.json", with_rows(read(args.name), new))


if __name__ == "__main__":
    main()
