"""Draw what the network learned: docs/images/learned-*.png and learned.txt.

python docs/images/learned.py
"""

from __future__ import annotations

from pathlib import Path

from oxx_env import insight

POLICY = "champion"
GAMES = 2000
FOLDER = Path(__file__).parent


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    play = insight.self_play(f"policy:{POLICY}", players=2, games=GAMES, seed=1)
    figure, axes = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
    points = play.liking(play.cards, "points", [0, 1, 4, 7, 10])
    numbers = play.liking(play.cards, "number", range(1, 111, 11))
    insight.draw_liking(axes[0, 0], play.liking(play.cards, "fits"), "rows that the card fits")
    insight.draw_liking(axes[0, 1], points, "heads it would take now, from")
    insight.draw_liking(axes[1, 0], play.liking(play.cards, "heads"), "heads on the card")
    insight.draw_liking(axes[1, 1], numbers, "number, from")
    figure.savefig(FOLDER / "learned-cards.png", dpi=90)

    figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
    points = play.liking(play.rows, "points", [0, 1, 3, 6, 9])
    insight.draw_liking(axes[0], play.liking(play.rows, "dearer"), "allowed rows that cost less")
    insight.draw_liking(axes[1], play.liking(play.rows, "length"), "cards in the row")
    insight.draw_liking(axes[2], points, "heads taken, from")
    figure.savefig(FOLDER / "learned-rows.png", dpi=90)

    figure, axes = plt.subplots(figsize=(4.5, 4), layout="constrained")
    insight.draw_calibration(axes, play.calibration(10))
    figure.savefig(FOLDER / "learned-values.png", dpi=90)

    cards = insight.card_values(play)
    head = (
        f"policy:{POLICY}, {play.games:,} games of {play.players} players with itself, rules "
        f"{play.rules}, {len(play.values):,} decisions; its value explains "
        f"{play.explained:.0%} of the variance of what comes\n\n"
    )
    groups = "".join(
        f"{group['foretold']:+8.2f} {group['came']:+6.2f}\n" for group in cards.groups(5)
    )
    fifths = f"\n\nfifths of all cards, the best to hold first\nforetold   came\n{groups}"
    (FOLDER / "learned.txt").write_text(head + cards.table(10) + fifths, encoding="utf-8")


if __name__ == "__main__":
    main()
