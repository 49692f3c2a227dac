"""Finished rows of a table that takes long, kept in a JSON file, so that a stopped run goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from oxx_env.lib.files import read_json
from oxx_env.policy.checkpoint import write_atomically
from training.config import differences


class Rows:
    """Rows by name; the file is written anew after each one.

    path    the file; made with its folder at the first row
    key     what all rows have in common (seed, checksum, ...): a file of another is refused
    fields  what every row holds at least
    """

    def __init__(self, path: Path, key: dict[str, Any], fields: set[str]) -> None:
        """Read the file, if it is there. Raises ValueError, OSError."""
        self.path, self.key = path, key
        self.done: dict[str, dict[str, Any]] = {}
        if not path.exists():
            return
        try:
            kept = read_json(path, 1 << 26)
        except ValueError as error:
            raise ValueError(f"{path} is no JSON file: {error}") from error
        rows = kept.get("rows") if isinstance(kept, dict) else None
        if not isinstance(rows, dict) or not all(
            isinstance(row, dict) and row.keys() >= fields for row in rows.values()
        ):
            raise ValueError(f"{path} holds no finished rows; name another file by --out")
        different = differences(kept, key)
        if different:
            raise ValueError(
                f"{path} was made with another {', '.join(different)}: name another file by --out"
            )
        self.done = rows

    def add(self, name: str, row: dict[str, Any]) -> None:
        """Keep one more row."""
        self.done[name] = row
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**self.key, "rows": self.done}, indent=2) + "\n"
        write_atomically(self.path, text.encode())
