"""Draw the README's table in play: docs/images/table.svg and table.png.

python docs/images/make.py
"""

from __future__ import annotations

from pathlib import Path

from oxx_env import render
from oxx_env.game.table import Table
from oxx_env.game.views import View

SEED = 32
FOLDER = Path(__file__).parent


def position() -> View:
    """A row to choose in the tenth round of four, with three cards still to come."""
    table = Table(players=4)
    table.deal(seed=SEED)
    for decision in range(1000):
        seat = table.deciders()[0]
        view = table.view(seat)
        if view.phase == "row" and view.game["round"] >= 9 and len(view.revealed) >= 3:
            return view
        table.act(seat, view.legal[decision % len(view.legal)])
    raise AssertionError("no such position in this game")


def main() -> None:
    from PIL import Image

    view = position()
    (FOLDER / "table.svg").write_text(render.svg(view), encoding="utf-8")
    Image.fromarray(render.rgb_array(view)).quantize(128).save(FOLDER / "table.png", optimize=True)


if __name__ == "__main__":
    main()
