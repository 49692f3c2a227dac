"""The game of a position as the kernel's record, built of its facts and its history."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game import calls
from oxx_env.game.cards import NUMBERS
from oxx_env.game.replay import Deal, Replay
from oxx_env.game.rules import (
    CARD_PHASE,
    GAME,
    NO_CARD,
    NO_SEED,
    OVER,
    ROW_PHASE,
    ROWS,
)
from oxx_env.game.views import View
from oxx_env.lib.texts import short
from oxx_env.notation.position_facts import Facts, Path, fail
from oxx_env.notation.records import Reader, RecordError, listed

_OF_HISTORY = (  # fields whose order of cards only the history knows
    "pile_starts", "piles", "taken", "taken_by", "taken_count", "placed", "revealed", "revealed_by",
    "round", "seen",
)  # fmt: skip


def build(facts: Facts) -> NDArray[np.void]:
    """GAME [1] of checked facts, everything hidden blank. Raises PositionError where the history
    does not lead to them."""
    games = np.zeros(1, GAME)
    game, players = games[0], facts.players
    game["seed"] = NO_SEED
    game["rules"], game["players"], game["phase"] = facts.flags, players, facts.phase
    game["match_game"], game["match_games"] = facts.match_game, facts.match_games
    game["match_points"][:players] = facts.before
    game["points"][:players] = facts.scores
    game["round"] = facts.round
    game["hand_sizes"][:players] = facts.hand_sizes
    game["pile_sizes"][:players] = facts.pile_sizes
    seen = [number for _, number in facts.revealed]
    for row, numbers in enumerate(facts.rows):
        seen += numbers
        for number in numbers:
            calls.put_on_row(games, facts.decks, row, number)
    for seat in range(players):
        hand = facts.hand if seat == facts.seat else facts.known[seat]
        game["hands"][seat, : len(hand)] = hand
        seen += [*facts.known[seat], *facts.taken[seat], *facts.returned[seat]]
    for number in seen:
        calls.see(games, number)
    if facts.phase == CARD_PHASE and (facts.picked or len(facts.hand) == 1):
        # Which of several was picked is unknown, only that one was; a single card picks itself.
        game["picks"][facts.seat] = facts.hand[0]
    if facts.history:
        end = _end_of_history(facts)
        for name in _OF_HISTORY:
            game[name] = end[name]
    else:
        _lay_out_unordered(facts, game)
    return games


def _lay_out_unordered(facts: Facts, game: np.void) -> None:
    """Returned, taken and revealed cards, whose order is unknown without a history."""
    players, ring = facts.players, facts.each
    for seat, numbers in enumerate(facts.returned):
        # Exact unless a returned card was drawn again, which makes no visible difference.
        drawn = ring - facts.pile_sizes[seat] + len(numbers)
        game["pile_starts"][seat] = drawn % ring
        first = drawn + facts.pile_sizes[seat] - len(numbers)
        for index, number in enumerate(numbers):
            game["piles"][seat * ring + (first + index) % ring] = number
    taken = [(seat, number) for seat, pile in enumerate(facts.taken) for number in pile]
    game["taken_count"] = len(taken)
    game["taken"][: len(taken)] = [number for _, number in taken]
    game["taken_by"][: len(taken)] = [seat for seat, _ in taken]
    if facts.phase == ROW_PHASE:
        placed = players - len(facts.revealed)
        game["placed"] = placed
        game["revealed"][placed:players] = [number for _, number in facts.revealed]
        game["revealed_by"][placed:players] = [seat for seat, _ in facts.revealed]


def check_turn(facts: Facts, view: View) -> None:
    """Do `to_act` and `legal` agree with the rest?"""
    if facts.phase == ROW_PHASE:
        seat, number = facts.revealed[0]
        legal = int(calls.legal_rows(view.games, view.decks, number))
        if legal & (legal - 1) == 0:
            goes = f"to row {legal.bit_length() - 1}" if legal else "under the draw pile"
            problem = f"card {number} of seat {seat} has no choice: it goes {goes}"
            fail(f"{problem}; give the position after that", "revealed", 0)
    for key, right in (("to_act", view.to_act), ("legal", view.legal)):
        given = facts.data.get(key)
        if given is not None and given != right:
            fail(f"{short(given)}; in this position it is {right}", key)


# --- the history ----------------------------------------------------------------------------------


def _end_of_history(facts: Facts) -> np.void:
    """The record to which the history leads, which must agree with all facts."""
    try:
        replay = _follow(facts)
    except RecordError as error:
        path: Path = ("history",) if error.round is None else ("history", error.round - 1)
        fail(f"round {error.round}, {error.clause}: {error.problem}", *path)
    end = replay.view(facts.seat)
    sizes = {key: end.game[key][: facts.players].tolist() for key in ("hand_sizes", "pile_sizes")}
    facts.check_agrees("rows", end.rows, facts.rows)
    facts.check_agrees("revealed", end.revealed, [list(pair) for pair in facts.revealed])
    facts.check_agrees("oxx_piles", end.oxx_piles, facts.taken)
    facts.check_agrees("hand_sizes", sizes["hand_sizes"], facts.hand_sizes)
    facts.check_agrees("pile_sizes", sizes["pile_sizes"], facts.pile_sizes)
    facts.check_agrees("returned", end.returned, facts.returned)
    facts.check_agrees("known_hand", [sorted(numbers) for numbers in end.known_hand], facts.known)
    if not (facts.phase == OVER and facts.positive):
        facts.check_agrees("scores", end.scores, facts.scores)
    seen = int(end.game["seen"][0]) | int(end.game["seen"][1]) << 64
    for index, number in enumerate(facts.data["hand"]):
        if seen >> number & 1 and number not in end.known_hand[facts.seat]:
            fail(f"card {number} was played before, by the history", "hand", index)
    return replay.game


def _follow(facts: Facts) -> Replay:
    """Go through the history with all hands hidden. Raises RecordError."""

    def refuse(where: str, clause: str, problem: str) -> None:
        raise RecordError(1, where, clause, problem)

    reader = Reader(facts.players, refuse)
    rounds = [
        reader.round(data, f"round {number}") for number, data in enumerate(facts.history, start=1)
    ]
    replay = Replay.of_deal(facts.rules, facts.decks, _hidden_deal(facts, rounds))
    for number, (played, placements) in enumerate(rounds, start=1):
        where, last = f"round {number}", number == len(rounds)
        if replay.over:
            refuse(where, "V2c" if facts.positive else "R12", "the game was over")
        reader.follow(replay, played, placements, where)
        if last and facts.phase == ROW_PHASE:
            break
        reader.check_placed(replay, where)
        if last and facts.phase == OVER and not replay.out:
            replay.game["round"] += 1
            replay.end()
        else:
            replay.step()
    return replay


def _hidden_deal(facts: Facts, rounds: list[Any]) -> Deal:
    """The rows at the deal, found backwards: the first card that was taken, or still lies there."""
    starts = [row[0] for row in facts.rows]
    for _, placements in reversed(rounds):
        for _, _, row, taken in reversed(placements):
            if row is not None and 0 <= row < ROWS and taken:
                starts[row] = taken[0]
    if len(set(starts)) < ROWS or not all(1 <= number <= NUMBERS for number in starts):
        fail(f"it begins with rows of {listed(starts)}, which cannot be", "history")
    return Deal([[NO_CARD] * facts.each] * facts.players, starts)
