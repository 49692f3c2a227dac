"""What somebody does first with the package where it lies; `test_installed.py` runs it.

    python first_hour.py PLACE [all]

PLACE is where the package has to lie. Without `all` it only sees to it that the package is whole.
Works in the current folder. Imports nothing of the tests.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import json
import re
import sys
from pathlib import Path

import numpy as np

import oxx_env
from oxx_env import bots
from oxx_env.commands import _cli
from oxx_env.game.table import Table
from oxx_env.policy import checkpoint

SHIPPED = {"apprentice", "challenger", "champion", "champion-1", "quick", "swift", "swift-1"}
POSITION = "2p | rows 12 7 31 20 46 | hand 3 17 52 88"


def oxx(*words: str) -> str:
    """What a command prints; it has to end well."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = _cli.main(list(words))
    assert code == 0, (words, code, out.getvalue())
    return out.getvalue()


def typing(answers: list[str]) -> None:
    """Whoever is asked types these answers; then the first of the choices in the prompt."""

    def answer(prompt: str = "") -> str:
        return answers.pop(0) if answers else re.search(r"\((\d+)", prompt)[1]

    builtins.input = answer


def is_whole(place: Path) -> None:
    """Package and checkpoints lie where they should; decks, pages and networks are there."""
    assert Path(oxx_env.__file__).is_relative_to(place), oxx_env.__file__
    assert checkpoint.SHIPPED.is_relative_to(place), checkpoint.SHIPPED
    assert {folder.name for folder in checkpoint.SHIPPED.iterdir()} == SHIPPED
    for name in sorted(SHIPPED):
        if name.startswith("swift"):
            checkpoint.load_rollout_net(name)
        else:
            bots.make(f"policy:{name}")
            bots.make(f"search:{name}:16")
    for deck in ("balanced", "three-color", "two-color"):
        Table(deck=deck)
    assert (Path(oxx_env.__file__).parent / "web" / "static" / "index.html").is_file()


def every_policy_plays() -> None:
    table = Table(players=2)
    table.deal(seed=1)
    view, rng = table.view(0), np.random.default_rng(1)
    policies = [f"policy:{name}" for name in SHIPPED if not name.startswith("swift")]
    for spec in [*policies, "search:champion:16", "search:champion-1:16"]:
        assert bots.make(spec).act(view, rng) in view.legal


def main(place: str, *more: str) -> None:
    is_whole(Path(place).resolve())
    if not more:
        return
    every_policy_plays()
    typing([])
    played = oxx(
        "play", "--players", "2", "--bots", "search:champion:16", "--seed", "1", "--save", "games"
    )
    assert "1 finished game saved" in played
    assert "1 game" in oxx("replay", "games")
    advice = json.loads(oxx("advise", POSITION, "--bot", "search:champion:16", "--json"))
    assert len(advice["actions"]) == 4
    typing(["12 7 31 20 46", "3 17 52 88", "q"])
    assert "Good-bye" in oxx(
        "track", "followed.json", "--players", "2", "--bot", "search:champion:16"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
