"""Rules changed on purpose, one small mutant at a time: do the tests notice?

    python -m tests.stress.mutants
    python -m tests.stress.mutants --only R8 V2f

Each mutant is one edit of `oxx_env/rules.py` in a copy of the package. Two nets are thrown: the
tests by clause (`tests/test_rules.py`, uncompiled), and random games against the reference, one for
each table size and rule set. A mutant that the first net lets through is *alive*.

Exit code 0: all are caught by the tests. 1: some are alive.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import tyro

from tests.stress import ROOT

RULES = ROOT / "oxx_env" / "game" / "rules.py"
TESTS = ("test_rules.py", "positions.py", "tracing.py", "reference.py", "odd_decks.py")
# Asks for 8,000 deals, a minute uncompiled; only what deals needs it.
DEALS = "test_r2_every_deal_is_as_likely_as_another"


@dataclass(frozen=True)
class Mutant:
    """One edit: `old` stands in the file exactly once."""

    clause: str
    what: str  # the rule that is then played
    old: str
    new: str


MUTANTS = (
    Mutant("R1", "points are the heads of the most frequent color",
        "total = cards.sum(axis=1)", "total = cards.max(axis=1)"),
    Mutant("R2", "two players get 20 cards",
        "np.array([0, 0, 24, 20, 16,", "np.array([0, 0, 20, 20, 16,"),
    Mutant("R2", "ten players get 12 cards less four",
        "12, 12, 8, 8], dtype", "12, 12, 8, 4], dtype"),
    Mutant("R2", "nothing is shuffled",
        "other = index + scale(mix(state), NUMBERS - index)", "other = index"),
    Mutant("R2", "the highest place is never drawn from",
        "scale(mix(state), NUMBERS - index)", "scale(mix(state), NUMBERS - index - 1)"),
    Mutant("R3", "the rows start with cards that were dealt",
        'game["rows"][row, 0] = box[dealt + row]', 'game["rows"][row, 0] = box[row]'),
    Mutant("R3", "nobody has seen the cards that start the rows",
        "        see(game, number)\n        put_on_row(game, deck, row, number)",
        "        put_on_row(game, deck, row, number)"),
    Mutant("R4", "of the last two cards the lower plays itself",
        'forced = game["hand_sizes"][seat] == 1', 'forced = game["hand_sizes"][seat] <= 2'),
    Mutant("R4", "cards are revealed when one player has chosen",
        "            if game[\"picks\"][seat] == NO_CARD:\n                return WAITING",
        "            if game[\"picks\"][0] == NO_CARD:\n                return WAITING"),
    Mutant("R4", "revealed cards are not seen",
        '    game["seen"][0] |= set0\n    game["seen"][1] |= set1\n', ""),
    Mutant("R5", "the highest card is placed first",
        "place = count_below(set0, set1, number)\n",
        "place = players - 1 - count_below(set0, set1, number)\n"),
    Mutant("R5", "the owner of the first card chooses all rows",
        'seat == game["revealed_by"][game["placed"]]', 'seat == game["revealed_by"][0]'),
    Mutant("R6", "a color needs two heads to be shared",
        "shows = cards > 0", "shows = cards > 1"),
    Mutant("R6", "any card of a row may match, not its end alone",
        '(game["row_ends"] & ~mask) | (deck', 'game["row_ends"] | (deck'),
    Mutant("R6", "a card may go anywhere",
        "anywhere = (rows == 0) & (not is_positive(game))", "anywhere = not is_positive(game)"),
    Mutant("R6", "the sixth color does not count",
        "colors = (shows << color).sum", "colors = (shows << color)[:, :5].sum"),
    Mutant("R7", "the fifth card takes", "uint64(0x7A_00_00", "uint64(0x7B_00_00"),
    Mutant("R7", "the seventh card takes", "uint64(0x7A_00_00", "uint64(0x79_00_00"),
    Mutant("R8", "five heads of a color take", "7A_7A_7A_7A_7A_7A)", "7B_7B_7B_7B_7B_7B)"),
    Mutant("R8", "seven heads of a color take", "7A_7A_7A_7A_7A_7A)", "79_79_79_79_79_79)"),
    Mutant("R8", "blue does not take", "7A_7A_7A_7A_7A_7A)", "7A_7A_7A_7A_7A_00)"),
    Mutant("R8", "the placed card does not count",
        'game["row_sums"][row] + deck["cards"][number], row',
        'game["row_sums"][row] + (deck["cards"][number] & (_BYTE << _56)), row'),
    Mutant("R9", "a card that fits nowhere goes under the pile in the base game too",
        "return ALL_ROWS if anywhere else rows", "return rows"),
    Mutant("R9", "it takes nothing",
        "return overflows(game, deck, number, row) | (not fits(game, deck, number, row))",
        "return overflows(game, deck, number, row)"),
    Mutant("R10", "the row goes to the first seat",
        "owner = np.uint64(seat) * _FIVE_ONES", "owner = np.uint64(0) * _FIVE_ONES"),
    Mutant("R10", "the last taken card is lost",
        'game["taken_count"] = count + size', 'game["taken_count"] = count + size - 1'),
    Mutant("R10", "only the last taking counts",
        'game["points"][seat] += heads_of', 'game["points"][seat] = heads_of'),
    Mutant("R11", "cards are drawn with one left in hand",
        '        if game["hand_sizes"][seat] == 0:\n',
        '        if game["hand_sizes"][seat] <= 1:\n'),
    Mutant("R11", "three cards are drawn",
        'size = min(HAND_SIZE, np.int64(game["pile_sizes"][seat]))',
        'size = min(3, np.int64(game["pile_sizes"][seat]))'),
    Mutant("R11", "a hand is not sorted",
        "    b, c = min(b, c), max(b, c)\n", ""),
    Mutant("R12", "the game ends with an empty hand",
        'if game["hand_sizes"][seat] + game["pile_sizes"][seat] == 0:',
        'if game["hand_sizes"][seat] == 0:'),
    Mutant("R12", "the last cards are not played",
        'if game["hand_sizes"][seat] + game["pile_sizes"][seat] == 0:',
        'if game["hand_sizes"][seat] + game["pile_sizes"][seat] <= 1:'),
    Mutant("R13", "points of a match are those of its last game",
        'game["match_points"][seat] += game["points"][seat]',
        'game["match_points"][seat] = game["points"][seat]'),
    Mutant("R13", "a match is one game longer",
        'if game["match_game"] < game["match_games"]:',
        'if game["match_game"] <= game["match_games"]:'),
    Mutant("V1", "the sixth card takes in `color`",
        'return _SIX_OF_A_COLOR if game["rules"] & COLOR else _BASE_LIMITS', "return _BASE_LIMITS"),
    Mutant("V1", "the sixth card takes nothing in `positive` either",
        'if game["rules"] & COLOR else', 'if game["rules"] & (COLOR | POSITIVE) else'),
    Mutant("V2a", "`positive` counts cards, not heads",
        '    game["points"][seat] += heads_of(game["row_sums"][row])\n',
        '    game["points"][seat] += length_of(game["row_sums"][row]) if is_positive(game) else'
        ' heads_of(game["row_sums"][row])\n'),
    Mutant("V2b", "a card that fits nowhere takes a row in `positive`",
        "anywhere = (rows == 0) & (not is_positive(game))", "anywhere = rows == 0"),
    Mutant("V2b", "a returned card is drawn first",
        'cell = pile_cell(game, seat, np.int64(game["pile_sizes"][seat]))',
        'ring = CARDS_DEALT[game["players"]]\n'
        '    game["pile_starts"][seat] = (np.int64(game["pile_starts"][seat]) + ring - 1) % ring\n'
        "    cell = pile_cell(game, seat, 0)"),
    Mutant("V2b", "a returned card goes out of the game",
        '    game["pile_sizes"][seat] += 1\n', ""),
    Mutant("V2c", "the last seat may run out",
        "def someone_is_out(game):\n"
        '    """R12, V2c: has a player no card left, neither in the hand nor in the draw pile?"""\n'
        '    for seat in range(np.int64(game["players"])):',
        "def someone_is_out(game):\n"
        '    """R12, V2c: has a player no card left, neither in the hand nor in the draw pile?"""\n'
        '    for seat in range(np.int64(game["players"]) - 1):'),
    Mutant("V2d", "cards left are won",
        'game["points"][seat] -= heads_left', 'game["points"][seat] += heads_left'),
    Mutant("V2d", "the draw pile costs nothing",
        'heads += heads_of(deck["cards"][game["piles"][pile_cell(game, seat, position)]])',
        "heads += 0"),
    Mutant("V2d", "the hand costs nothing",
        'heads += heads_of(deck["cards"][game["hands"][seat, slot]])', "heads += 0"),
    Mutant("V2e", "a hand is refilled by four or not at all",
        '        if game["hand_sizes"][seat] == 0:\n',
        '        if game["hand_sizes"][seat] == 0 and game["pile_sizes"][seat] >= HAND_SIZE:\n'),
    Mutant("V2f", "a deadlock goes on",
        "(is_positive(game) and is_deadlocked(game, deck))", "False"),
    Mutant("V2f", "a deadlock ends the base game",
        "(is_positive(game) and is_deadlocked(game, deck))", "is_deadlocked(game, deck)"),
    Mutant("V2f", "draw piles do not matter to a deadlock",
        "            if matching_rows(game, deck, number):\n"
        "                return False\n    return True",
        "            if matching_rows(game, deck, number):\n                pass\n    return True"),
    Mutant("V2f", "hands do not matter to a deadlock",
        'if matching_rows(game, deck, np.int64(game["hands"][seat, slot])):\n'
        "                return",
        'if False and matching_rows(game, deck, np.int64(game["hands"][seat, slot])):\n'
        "                return"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Options:
    """Change the rules and see whether the tests notice."""

    only: tuple[str, ...] = ()
    """Clauses; empty: all."""


@dataclass(frozen=True)
class Verdict:
    """What noticed a mutant."""

    test: str  # the first test that failed; empty: none
    reference: str  # what differed from the reference; empty: nothing


def mutated(mutant: Mutant, source: str) -> str:
    """The rules with the edit made. Raises ValueError unless its place is there once."""
    if source.count(mutant.old) != 1:
        raise ValueError(f"{mutant.clause}, {mutant.what}: {source.count(mutant.old)} places")
    return source.replace(mutant.old, mutant.new)


def copy_of_project(folder: Path) -> Path:
    """Package and tests, without anything compiled."""
    ignore = shutil.ignore_patterns("__pycache__", "static")
    shutil.copytree(ROOT / "oxx_env", folder / "oxx_env", ignore=ignore)
    (folder / "tests").mkdir()
    for name in TESTS:
        shutil.copy(ROOT / "tests" / name, folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder / "oxx_env" / "game" / "rules.py"


def judge(folder: Path, deals: bool) -> Verdict:
    """Throw both nets over the copy in the folder."""
    test = run(
        [
            *("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"),
            *("-W", "ignore", "tests/test_rules.py"),
        ]
        + ([] if deals else ["--deselect", f"tests/test_rules.py::{DEALS}"]),
        folder,
    )
    failed = re.search(r"^(?:FAILED|ERROR) (?:tests/test_rules\.py::)?(\S+)", test.stdout, re.M)
    caught = failed[1] if failed else "" if test.returncode == 0 else f"exit {test.returncode}"
    told = run(["-c", _GAMES], folder)
    lines = told.stdout.strip().splitlines()[-1:] or told.stderr.strip().splitlines()[-1:]
    return Verdict(caught, "" if lines == ["equal"] else (lines or ["killed"])[0])


_GAMES = """
import sys
sys.path[:0] = [".", "tests"]
import numpy as np
import tracing
from oxx_env import cards, engine, rules
tracing.MOST_STATES = 2000
tracer = tracing.Tracer()
heads = tuple(map(tuple, cards.load_deck("balanced").tolist()))
decks = engine.stack_decks(["balanced"])
np.seterr(over="ignore")
for players in range(2, 11):
    for flags, name in enumerate(rules.RULE_SETS):
        games = engine.new_games([100 * players + flags], decks, players, name)
        try:
            tracer.check(games, decks, heads, "game")
        except AssertionError as error:
            print(f"{players} players, {name}: " + str(error).splitlines()[1].partition(":")[0])
            sys.exit(1)
print("equal")
"""


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(folder)}
    command = [sys.executable, *arguments]
    try:
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "FAILED a game without end", "")


def main(argv: list[str]) -> int:
    options = tyro.cli(Options, args=argv, description=__doc__)
    source = RULES.read_text(encoding="utf-8")
    chosen = [m for m in MUTANTS if not options.only or m.clause in options.only]
    alive = 0
    print("| clause | mutant | caught by | and in games against the reference |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="oxx-mutants-") as name:
        folder = Path(name)
        rules = copy_of_project(folder)
        for mutant in chosen:
            rules.write_text(mutated(mutant, source), encoding="utf-8")
            verdict = judge(folder, mutant.clause == "R2")
            alive += not verdict.test
            caught = f"`{verdict.test}`" if verdict.test else "**alive**"
            reference = verdict.reference or "equal"
            print(f"| {mutant.clause} | {mutant.what} | {caught} | {reference} |", flush=True)
    print(f"\n{len(chosen)} mutants, {len(chosen) - alive} caught, {alive} alive")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
