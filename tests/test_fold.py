"""Lines that fit the terminal: nothing is cut, and no sum is broken in two."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import numpy as np
import pytest

from oxx_env import render
from oxx_env.commands import _show
from oxx_env.game.rules import deck_cards
from oxx_env.game.table import Table
from oxx_env.lib import texts
from oxx_env.notation import records, wording
from oxx_env.show import terminal

SUM = re.compile(r"\d+ heads?:(?: [BYGRKW]\d+)+|row \d(?: \(takes \d+\))?|\d+ points?")


@pytest.mark.parametrize("columns", [60, 80])
def test_whatever_is_told_of_a_game_fits_and_keeps_its_sums_whole(columns: int) -> None:
    rng = np.random.default_rng(1)
    folded = 0

    def check(text: str, fitting: str) -> None:
        nonlocal folded
        assert max(map(texts.width, fitting.split("\n"))) <= columns, fitting
        assert fitting.split() == text.split()  # nothing is lost
        assert SUM.findall(fitting) == SUM.findall(text), fitting
        folded += text != fitting

    for seed, rules in enumerate(["base", "color", "positive", "color+positive"]):
        players = int(rng.integers(2, 11))
        table = Table(players, rules, ["balanced", "two-color"][seed % 2])
        table.deal(seed=seed)
        deck = deck_cards(table.decks[0])
        names = ["you", *(f"search:champion:16 {seat}" for seat in range(1, players))]
        said = terminal.Terminal(color=bool(seed % 2))
        while not table.over:
            for seat in table.deciders():
                view = table.view(seat)
                for actions in (True, False):
                    options: Any = (view, said.color, names, actions)
                    check(render.text(*options), render.text(*options, columns))
                if view.phase == "row":
                    assert view.card is not None
                    told = f"Your {said.card(view.card, deck)} may go to: "
                    told += wording.row_choices(view, view.card)
                    check(told, texts.fold(told, columns))
                for number in view.hand:
                    told = f"{said.card(number, deck)}: {wording.places(view, number)}"
                    check(told, texts.fold(told, columns))
                table.act(seat, int(rng.choice(view.legal)))
                if view.phase == "row":
                    break
        for kind, *rest in records.events_of(table):
            if kind == "reveal":
                told = terminal.tell_cards(rest[1], names, deck, said)
                check(told, texts.fold(told, columns))
            elif kind == "place":
                told = wording.placement(rest[0], names[rest[0][0]], rules, deck)
                check(told, texts.fold(told, columns))
    assert folded > 20


def test_lines_stay_as_they_are_where_there_is_no_terminal_and_in_plain_mode(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    long = "row 1 (takes 12); " * 10
    terminal.Terminal().say(long)
    monkeypatch.setattr(texts.shutil, "get_terminal_size", lambda: os.terminal_size((40, 24)))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    terminal.Terminal(plain=True).say(long)
    terminal.Terminal(color=False).say(long)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [long, long]
    assert lines[2:4] == [
        "row 1 (takes 12); row 1 (takes 12);",
        "    row 1 (takes 12); row 1 (takes 12);",
    ]


def test_a_bar_foretells_no_time_from_what_came_before_the_first_game(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(_show.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    bar = _show.Bar(quiet=False)
    for seconds, games in ((60, 2), (61, 102), (62, 202)):  # a minute of compiling
        now[0] = seconds
        bar(games, 1002)
    told = capsys.readouterr().err.split("\r")
    assert [line.partition("games")[2].strip() for line in told if "games" in line] == [
        "",
        ", 9 s left",
        ", 8 s left",
    ]
