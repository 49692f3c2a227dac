"""One table: a match in progress, with its decks, its views and its decisions.

The adapters (environments, records, play) are thin wrappers around it. A table keeps the deal and
the decisions; a `Replay` goes through them when a history, events or records are wanted.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game import calls, cards, engine, scoring, validation
from oxx_env.game.replay import ALL_SEATS, Deal, Replay, Rounds, Start
from oxx_env.game.rules import (
    ACTIONS,
    CARD_PHASE,
    DECK,
    GAME,
    OVER,
    PASS,
    RULE_SETS,
    deck_record,
)
from oxx_env.game.validation import MAX_GAMES
from oxx_env.game.views import View, clone, complete
from oxx_env.lib.texts import short

MAX_SEED = 2**64 - 2
Deals = Callable[[int], tuple[list[list[int]], list[int]]]  # game from 1 -> draw piles, rows

Mark = tuple[bytes, int]  # the record's bytes, how much was noted


class Table:
    """A match between `players` seats.

    players          2 to 10
    rules            `base`, `color`, `positive` or `color+positive`
    deck             a deck spec (see `cards`); a function `rng -> deck` is called at each deal
    games_per_match  games played in a row, points added up (R13)

    Raises ValueError (DeckError for the deck) for anything else. Call `deal` before all else.

    >>> table = Table(players=2)
    >>> table.deal(seed=1)
    >>> table.deciders(), table.legal(0)
    ([0, 1], [0, 1, 2, 3])
    """

    def __init__(
        self,
        players: int = 4,
        rules: str = "base",
        deck: cards.DeckSpec = "balanced",
        games_per_match: int = 1,
    ) -> None:
        self.players = engine.check_players(players)
        self.rules = rules
        self.rule_flags = engine.rule_flags(rules)
        self.games_per_match = check_games(games_per_match)
        self.deck_spec = deck
        self.deck = cards.deck_name(deck)
        self._fixed_deck = None if callable(deck) else deck_record(cards.load_deck(deck))
        self.games = np.zeros(1, GAME)  # GAME [1]
        self.decks = np.zeros(1, DECK) if self._fixed_deck is None else self._fixed_deck  # DECK [1]
        self._deals: Deals | None = None
        self._begin({})

    # --- dealing ---

    def deal(
        self,
        seed: int | None = None,
        deck: cards.DeckSpec | None = None,
        draw_piles: Sequence[Sequence[int]] | None = None,
        rows: Sequence[int] | None = None,
    ) -> None:
        """Start a match: by a seed (0 to 2**64-2; None draws one), or with cards set by hand.

        `draw_piles` [P] lists the numbers of each seat, first drawn first, all cards of R2; `rows`
        the five row cards. Both belong together. `deck` replaces the table's deck for this match.
        """
        if (draw_piles is None) != (rows is None):
            raise ValueError("a deal set by hand needs both draw_piles and rows")
        seed = check_seed(_drawn_seed() if seed is None else seed)
        decks = self._fixed_deck
        name = cards.deck_name(self.deck_spec)
        if deck is not None or decks is None:
            spec = self.deck_spec if deck is None else deck
            resolved = cards.resolve(spec, np.random.default_rng(seed))
            decks, name = deck_record(resolved), cards.deck_name(spec)
        games = np.zeros(1, GAME)
        game = games[0]
        game["players"], game["rules"] = self.players, self.rule_flags
        game["match_games"], game["match_game"] = self.games_per_match, 1
        game["seed"] = seed
        by_number: dict[int, Deal] = {}
        if draw_piles is not None and rows is not None:
            by_number[1] = Deal.checked(self.players, draw_piles, rows)
            by_number[1].lay_out(games, decks, seed)
        else:
            engine.deal(games, decks)
        self.games, self.decks, self.deck = games, decks, name
        self._begin(by_number)

    def deal_each(self, deals: Deals) -> None:
        """Start a match whose games are all set by hand.

        `deals(game)` gives draw piles and rows, as `deal` takes them, of each game (from 1) when
        it begins. So no game follows from another one. The same number must give the same deal.
        """
        draw_piles, rows = deals(1)
        self.deal(draw_piles=draw_piles, rows=rows)
        self._deals = deals

    def start(self, start: Start, seed: int | None = None) -> None:
        """Start a match in mid-game: what is hidden is dealt by the seed (None draws one).

        Deck, games of the match and points before are the start's. Where no seat has a choice the
        game runs on to the next decision. Its first game has no record. Raises ValueError, and
        nothing has happened, for a start that is none for this table.
        """
        seed = check_seed(_drawn_seed() if seed is None else seed)
        game = start.games[0]
        if int(game["players"]) != self.players:
            problem = f"the start has {game['players']} players; the table has {self.players}"
            raise ValueError(problem)
        if RULE_SETS[game["rules"]] != self.rules:
            other = RULE_SETS[game["rules"]]
            raise ValueError(f"the start has rule set {other!r}; the table plays {self.rules!r}")
        if game["phase"] == OVER:
            raise ValueError("the game is already over: there is nothing to play")
        own = start.seat
        if own != ALL_SEATS and game["picks"][own] and game["hand_sizes"][own] > 1:
            raise ValueError(
                f"seat {own} has picked a card and which one is unknown: "
                "start from the position before that"
            )
        games = complete(start.games, start.decks, start.seat, seed)
        if game["phase"] != CARD_PHASE or not games["picks"][0, : self.players].all():
            validation.check_games(games, start.decks)  # it is for games in which a seat decides
        log = _Log(games, start.decks, start.deck, {}, start)
        calls.advance(games, start.decks)
        if calls.match_over(games):
            raise ValueError("no seat has a decision left before the match is over")
        self.games, self.decks, self.deck = games, start.decks, start.deck
        self._deals, self._log = None, log

    def clear(self) -> None:
        """No match is dealt any more."""
        self.games = np.zeros(1, GAME)
        self._begin({})

    def _begin(self, by_hand: dict[int, Deal]) -> None:
        """A new log from where the table stands; views of the old match keep the old one."""
        self._deals = None
        self._log = _Log(self.games, self.decks, self.deck, by_hand)

    # --- playing ---

    @property
    def decisions(self) -> list[tuple[int, int]]:
        """(seat, action) since the deal, in order; what acts past `act` calls `note`."""
        return self._log.decisions

    def note(self, first: int, actions: bytes) -> None:
        """Note what the seats from `first` on did, one action a byte; passes do not count."""
        self._log.noted.append((first, actions))

    def mark(self) -> Mark:
        """Where the match stands now, for `undo`."""
        return self.games.tobytes(), len(self._log.noted)

    def undo(self, mark: Mark) -> None:
        """Go back to where the same match stood at a `mark`, as if nothing had happened since."""
        games, noted = mark
        self.games.view(np.uint8)[:] = np.frombuffer(games, np.uint8)
        self._log.forget(noted, int(self.games[0]["match_game"]))

    @property
    def game(self) -> np.void:
        """The full record, hidden cards and all."""
        return self.games[0]

    @property
    def dealt(self) -> bool:
        return bool(self.games[0]["players"])

    @property
    def over(self) -> bool:
        """Is the match over?"""
        return bool(calls.match_over(self.games))

    def deciders(self) -> list[int]:
        """The seats that decide now, in order; empty when the match is over."""
        legal = (calls.legal_actions(self.games, self.decks, s) for s in range(self.players))
        return [seat for seat, actions in enumerate(legal) if not actions >> PASS & 1]

    def legal(self, seat: int) -> list[int]:
        """The seat's legal actions; `[PASS]` where it has nothing to decide. Raises ValueError for
        a seat that is not at the table."""
        actions = int(calls.legal_actions(self.games, self.decks, check_seat(seat, self.players)))
        return [action for action in range(ACTIONS) if actions >> action & 1]

    def act(self, seat: int, action: int) -> None:
        """Carry out one decision; when all have decided, run on to the next one.

        Raises ValueError for an action that is not legal, or a seat that is not at the table.
        Whatever it raises, nothing has happened.
        """
        legal = self.legal(seat)
        if action not in legal or action == PASS:
            raise ValueError(f"action {action!r} of seat {seat} is not legal; legal: {legal}")
        mark = self.mark()
        try:
            calls.act(self.games, self.decks, seat, int(action))
            calls.advance(self.games, self.decks)
            number, by_hand = int(self.games[0]["match_game"]), self._log.by_hand
            if self._deals is not None and number not in by_hand:
                by_hand[number] = Deal.checked(self.players, *self._deals(number))
                by_hand[number].lay_out(self.games, self.decks)
            self.note(seat, bytes((action,)))
        except BaseException:  # also Ctrl-C between two of them
            self.undo(mark)
            raise

    def view(self, seat: int) -> View:
        """What the seat knows. Raises ValueError for a seat that is not at the table."""
        history = partial(self._log.history, len(self.decisions))
        seat = check_seat(seat, self.players)
        return View.of(self.games, self.decks, seat, self.deck, history)

    def points(self) -> NDArray[np.int64]:
        """Rulebook points of the match so far, [P]."""
        game = self.games[0]
        total = game["match_points"].astype(np.int64) + game["points"]
        return total[: self.players]

    def scores(self) -> list[int]:
        """Points of the match so far, by seat."""
        return [int(points) for points in self.points()]

    def ranks(self) -> list[int]:
        """Places by the points of the match so far, 1 = best, ties share, by seat."""
        return scoring.ranks(self.points(), self.rules)

    def winners(self) -> list[int]:
        """The seats with the best points of the match so far."""
        return scoring.winners(self.points(), self.rules)

    # --- looking back ---

    def replay(self) -> Replay:
        """All that happened in the match so far; always the same object, brought up to date."""
        return self._log.replay()

    def records(self, match_id: str | None = None) -> list[dict[str, Any]]:
        """The finished games of the match as records (`oxx-game/1`): `records.records_of`."""
        # Records lie above the game: the root of the package knows where.
        found: list[dict[str, Any]] = sys.modules["oxx_env"].records.records_of(self, match_id)
        return found

    def history(self, decisions: int | None = None) -> Rounds:
        """Rounds of the running game after the first `decisions`: finished ones, and in the row
        phase the running one with its placements so far."""
        return self._log.history(decisions)


class _Log:
    """One match: where it began, the decisions since, and on demand a replay of them.

    noted    (first seat, actions), one action a byte, in order; passes do not count
    by_hand  the deals that were set by hand, by their game from 1
    """

    def __init__(
        self,
        games: NDArray[np.void],
        decks: NDArray[np.void],
        deck: str,
        by_hand: dict[int, Deal],
        start: Start | None = None,
    ) -> None:
        self.noted: list[tuple[int, bytes]] = []
        self.by_hand = by_hand
        self._begin = partial(Replay, clone(games), decks, deck, by_hand, start)
        self._read = 0  # of those noted, how many are among the decisions
        self._decisions: list[tuple[int, int]] = []
        self._replay: Replay | None = None

    @property
    def decisions(self) -> list[tuple[int, int]]:
        """(seat, action) in order."""
        for first, actions in self.noted[self._read :]:
            self._decisions += [pair for pair in enumerate(actions, first) if pair[1] != PASS]
        self._read = len(self.noted)
        return self._decisions

    def forget(self, noted: int, game: int) -> None:
        """Keep the first `noted` of what is noted and the deals up to a game, as if the rest had
        not happened."""
        del self.noted[noted:]
        for number in [number for number in self.by_hand if number > game]:
            del self.by_hand[number]
        if self._read > noted:
            self._read, self._decisions, self._replay = 0, [], None

    def replay(self) -> Replay:
        """All decisions so far; the same replay each time."""
        if self._replay is None:
            self._replay = self._begin()
        self._replay.follow(self.decisions)
        return self._replay

    def history(self, decisions: int | None = None) -> Rounds:
        """Rounds of the game that runs after the first `decisions` (all)."""
        if decisions is None or decisions == len(self.decisions):
            return self.replay().history()
        replay = self._begin()
        replay.follow(self.decisions[:decisions])
        return replay.history()


def _drawn_seed() -> int:
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(11))


def as_integer(action: Any) -> int | None:
    """An action as an int: of an integer of any kind, or of an array of one; else None."""
    try:
        return operator.index(action)
    except TypeError:
        one = isinstance(action, np.ndarray) and action.size == 1 and action.dtype.kind in "iu"
        return int(action.item()) if one else None


def check_games(games_per_match: Any) -> int:
    """The games of a match as an int. Raises ValueError unless it is 1 to 1000."""
    games = engine.integer("games_per_match", games_per_match, 1, MAX_GAMES)
    if not 1 <= games <= MAX_GAMES:
        raise ValueError(f"games_per_match must be 1 to {MAX_GAMES}, not {games}")
    return games


def check_seat(seat: Any, players: int) -> int:
    """`seat` as an int; compiled code checks no index. Raises ValueError unless there is such a
    seat."""
    seat = engine.integer("the seat", seat, 0, players - 1)
    if not 0 <= seat < players:
        raise ValueError(
            f"seat {short(seat)}: with {players} players the seats are 0 to {players - 1}"
        )
    return seat


def check_seed(seed: Any) -> int:
    """The seed of a deal as an int. Raises ValueError unless it is 0 to 2**64-2."""
    seed = engine.integer("the seed", seed, 0, "2**64-2")
    if not 0 <= seed <= MAX_SEED:
        raise ValueError(f"the seed must be from 0 to 2**64-2, not {seed}")
    return seed
