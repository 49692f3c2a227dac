"""One table: a match in progress, with its decks, its views and its course.

The adapters (environments, records, play) are thin wrappers around it. The kernel keeps no history;
the course of a game is a function of its deal and the decisions made, so a table notes just those
and walks through them again when somebody asks.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oxx_env.game import cards, engine, validation
from oxx_env.game.rules import (
    ACTIONS,
    CARD_PHASE,
    CARDS_DEALT,
    DEALT,
    DECK,
    GAME,
    NO_SEED,
    NUMBERS,
    OVER,
    PASS,
    PLACED,
    RETURNED,
    REVEALED,
    ROUND_ENDED,
    ROWS,
    RULE_SETS,
    WAITING,
    act,
    advance,
    deck_cards,
    deck_record,
    legal_actions,
    match_over,
    shuffle,
    tick,
)
from oxx_env.game.validation import MAX_GAMES
from oxx_env.game.views import View, clone, complete
from oxx_env.lib.jit import kernel
from oxx_env.lib.texts import short

MAX_SEED = 2**64 - 2
Deals = Callable[[int], tuple[list[list[int]], list[int]]]  # game from 1 -> draw piles, rows

ALL_SEATS = -1
Mark = tuple[bytes, int]  # the record's bytes, how much of its course was noted


@kernel
def _act(games, decks, seat, action):
    act(games[0], decks[0], seat, action)


@kernel
def _shuffle(games):
    shuffle(games[0])


@kernel
def _tick(games, decks):
    return tick(games[0], decks[0])


@kernel
def _advance(games, decks):
    advance(games[0], decks[0])


@kernel
def _legal(games, decks, seat):
    return legal_actions(games[0], decks[0], seat)


@kernel
def _match_over(games):
    return match_over(games[0])


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
        by_hand = draw_piles is not None and rows is not None
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
        game["seed"] = NO_SEED if by_hand else seed
        by_number: dict[int, dict[str, Any]] = {}
        if by_hand:
            assert draw_piles is not None and rows is not None
            deal = check_deal(self.players, draw_piles, rows)
            by_number[1] = _lay_out(games, decks, deal, seed)
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

        Deck, games of the match and points before are the start's. Where nobody has a choice the
        game runs on to the next decision. Its first game has no record. Raises ValueError, and
        nothing has happened, for a start that is none for this table.
        """
        seed = check_seed(_drawn_seed() if seed is None else seed)
        game = start.games[0]
        if int(game["players"]) != self.players:
            raise ValueError(f"{game['players']} players told; the table has {self.players}")
        if RULE_SETS[game["rules"]] != self.rules:
            told = RULE_SETS[game["rules"]]
            raise ValueError(f"rule set {told!r} told; the table plays {self.rules!r}")
        if game["phase"] == OVER:
            raise ValueError("the game told is over: there is nothing to play")
        own = start.seat
        if own != ALL_SEATS and game["picks"][own] and game["hand_sizes"][own] > 1:
            raise ValueError(
                f"seat {own} has picked a card and it is not told which one: "
                "tell the position before that"
            )
        games = complete(start.games, start.decks, start.seat, seed)
        if game["phase"] != CARD_PHASE or not games["picks"][0, : self.players].all():
            validation.check_games(games, start.decks)  # it is for games in which somebody decides
        course = Course(clone(games), start.decks, start.deck, {}, start)
        _advance(games, start.decks)
        if _match_over(games):
            raise ValueError("nobody decides anything any more before the match is over")
        self.games, self.decks, self.deck = games, start.decks, start.deck
        self._deals, self._course = None, course

    def clear(self) -> None:
        """No match is dealt any more."""
        self.games = np.zeros(1, GAME)
        self._begin({})

    def _begin(self, by_hand: dict[int, dict[str, Any]]) -> None:
        """A new course from where the table stands; views of the old match keep the old one."""
        self._deals = None
        self._course = Course(clone(self.games), self.decks, self.deck, by_hand)

    # --- playing ---

    @property
    def decisions(self) -> list[tuple[int, int]]:
        """(seat, action) since the deal, in order; what acts past `act` calls `note`."""
        return self._course.decisions

    def note(self, first: int, actions: bytes) -> None:
        """Note what the seats from `first` on did, one action a byte; passes do not count."""
        self._course.noted.append((first, actions))

    def mark(self) -> Mark:
        """Where the match stands now, for `undo`."""
        return self.games.tobytes(), len(self._course.noted)

    def undo(self, mark: Mark) -> None:
        """Go back to where the same match stood at a `mark`, as if nothing had happened since."""
        games, noted = mark
        self.games.view(np.uint8)[:] = np.frombuffer(games, np.uint8)
        self._course.forget(noted, int(self.games[0]["match_game"]))

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
        return bool(_match_over(self.games))

    def deciders(self) -> list[int]:
        """The seats that decide now, in order; empty when the match is over."""
        return [s for s in range(self.players) if not _legal(self.games, self.decks, s) >> PASS & 1]

    def legal(self, seat: int) -> list[int]:
        """The seat's legal actions; `[PASS]` where it has nothing to decide. Raises ValueError for
        a seat that is not at the table."""
        actions = int(_legal(self.games, self.decks, check_seat(seat, self.players)))
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
            _act(self.games, self.decks, seat, int(action))
            _advance(self.games, self.decks)
            number, by_hand = int(self.games[0]["match_game"]), self._course.by_hand
            if self._deals is not None and number not in by_hand:
                deal = check_deal(self.players, *self._deals(number))
                by_hand[number] = _lay_out(self.games, self.decks, deal)
            self.note(seat, bytes((action,)))
        except BaseException:  # also Ctrl-C between two of them
            self.undo(mark)
            raise

    def view(self, seat: int) -> View:
        """What the seat knows. Raises ValueError for a seat that is not at the table."""
        history = partial(self._course.history, len(self.decisions))
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
        return ranks(self.points(), self.rules)

    def winners(self) -> list[int]:
        """The seats with the best points of the match so far."""
        return [seat for seat, rank in enumerate(self.ranks()) if rank == 1]

    # --- its course ---

    def walk(self) -> Walk:
        """The course of the match so far, brought up to date."""
        return self._course.walk()

    def history(self, decisions: int | None = None) -> list[dict[str, Any]]:
        """Rounds of the running game after the first `decisions`: finished ones, and in the row
        phase the running one with its placements so far."""
        return self._course.history(decisions)

    def records(self, match_id: str | None = None) -> list[dict[str, Any]]:
        """The finished games of the match as records (`oxx-game/1`).

        Raises ValueError if one of them started in mid-game: a record tells a game from its deal.
        """
        if self.walk().unrecorded:
            raise ValueError(
                "the first game of this match started in mid-game: it has no record, which would "
                "tell it from its deal on; history() tells its rounds"
            )
        return [
            {**record, "match": {**record["match"], "id": match_id}}
            for record in self.walk().records
        ]


@dataclass(frozen=True)
class Start:
    """Where a match may start in mid-game.

    games    GAME [1] as a view holds it: hidden cards are blank
    decks    DECK [1], the deck called `deck`
    seat     whose hand lies open in it; ALL_SEATS: all of them
    earlier  rounds of the game so far, as in a record; None: not told
    """

    games: NDArray[np.void]
    decks: NDArray[np.void]
    seat: int
    deck: str
    earlier: list[dict[str, Any]] | None

    @classmethod
    def at(cls, view: View) -> Start:
        """At what a seat sees."""
        game = view.game
        fresh = game["phase"] == CARD_PHASE and game["round"] == 0
        earlier = view.history()
        return cls(
            view.games, view.decks, view.seat, view.deck, earlier if earlier or fresh else None
        )


class Course:
    """One match: where it began, the decisions since, and on demand what came of them.

    games, decks   GAME [1] at the match's first decision and DECK [1], the deck called `deck`
    by_hand        number of a game from 1 -> its deal, where that was set by hand
    noted          (first seat, actions), one action a byte, in order: what acts appends here
    decisions      the same as (seat, action) in order, without passes
    """

    def __init__(
        self,
        games: NDArray[np.void],
        decks: NDArray[np.void],
        deck: str,
        by_hand: dict[int, dict[str, Any]],
        start: Start | None = None,
    ) -> None:
        self._start = start
        self.noted: list[tuple[int, bytes]] = []
        self._read = 0  # of those noted, how many are among the decisions
        self._decisions: list[tuple[int, int]] = []
        self._games, self._decks, self._deck, self.by_hand = games, decks, deck, by_hand
        self._walk: Walk | None = None

    @property
    def decisions(self) -> list[tuple[int, int]]:
        for first, actions in self.noted[self._read :]:
            self._decisions += [pair for pair in enumerate(actions, first) if pair[1] != PASS]
        self._read = len(self.noted)
        return self._decisions

    def forget(self, noted: int, game: int) -> None:
        """Leave the first `noted` of what is noted and the deals up to a game, as if the rest had
        not happened."""
        del self.noted[noted:]
        for number in [number for number in self.by_hand if number > game]:
            del self.by_hand[number]
        if self._read > noted:
            self._read, self._decisions, self._walk = 0, [], None

    def walk(self) -> Walk:
        """Through all decisions so far; the same one each time."""
        if self._walk is None:
            self._walk = self._new_walk()
        self._walk.follow(self.decisions)
        return self._walk

    def history(self, decisions: int | None = None) -> list[dict[str, Any]]:
        """Rounds of the game that runs after the first `decisions` (all)."""
        if decisions is None or decisions == len(self.decisions):
            return self.walk().rounds()
        walk = self._new_walk()
        walk.follow(self.decisions[:decisions])
        return walk.rounds()

    def _new_walk(self) -> Walk:
        return Walk(clone(self._games), self._decks, self._deck, self.by_hand, self._start)


class Walk:
    """Goes through a match decision by decision and tells its rounds, for records and histories."""

    def __init__(
        self,
        games: NDArray[np.void],
        decks: NDArray[np.void],
        deck: str,
        by_hand: dict[int, dict[str, Any]],
        start: Start | None = None,
    ) -> None:
        self.games, self.decks, self.deck = games, decks, deck
        self._by_hand = by_hand
        self.records: list[dict[str, Any]] = []  # finished games
        self.unrecorded = False  # is a game finished that started in mid-game?
        self._followed = 0
        self._rounds: list[dict[str, Any]] = []
        self._begin()
        self._middle, self._told = start is not None, True
        if start is not None:
            self._told = start.earlier is not None
            # Untold rounds still need one to put the placements of the running one into.
            earlier = start.earlier
            if earlier is None:
                earlier = [{"cards": [], "placements": []}]
            self._rounds = copy.deepcopy(earlier)
            self._run()

    def rounds(self) -> list[dict[str, Any]]:
        """Rounds of the running (or last) game, as in the record; none where the first of them
        are not known."""
        if not self._told:
            return []
        return [
            {
                "cards": list(r["cards"]),
                "placements": [[*p[:3], list(p[3])] for p in r["placements"]],
            }
            for r in self._rounds
        ]

    def follow(self, decisions: Sequence[tuple[int, int]]) -> None:
        """Go on to the end of `decisions`, which begin with those already followed."""
        for seat, action in decisions[self._followed :]:
            if self.games[0]["phase"] == CARD_PHASE:
                _act(self.games, self.decks, seat, action)
            else:
                self._placing(partial(_act, self.games, self.decks, seat, action))
            self._run()
        self._followed = len(decisions)

    def _run(self) -> None:
        while self._tick() != WAITING:
            pass

    def _tick(self) -> int:
        game = self.games[0]
        if game["phase"] == OVER:
            what = int(_tick(self.games, self.decks))
            if what == DEALT:
                if deal := self._by_hand.get(int(game["match_game"])):
                    cards_of = [n for pile in deal["draw_piles"] for n in pile], deal["rows"]
                    _lay_out(self.games, self.decks, cards_of)
                self._begin()
                self._middle, self._told = False, True
            return what
        if game["phase"] == CARD_PHASE:
            picks = game["picks"][: int(game["players"])].tolist()
            what = int(_tick(self.games, self.decks))
            if what == REVEALED:
                self._rounds.append({"cards": picks, "placements": []})
            return what
        what = self._placing(lambda: _tick(self.games, self.decks))
        if what == ROUND_ENDED and game["phase"] == OVER:
            self.unrecorded |= self._middle
            if not self._middle:
                self.records.append(self._record())
        return what

    def _placing(self, happen: Callable[[], Any]) -> int:
        """Let something happen in the row phase; note the placement if it was one."""
        game = self.games[0]
        placed, taken = int(game["placed"]), int(game["taken_count"])
        what = happen()
        if placed < int(game["players"]) and what in (None, PLACED, RETURNED):
            number = int(game["revealed"][placed])
            row = None
            if what != RETURNED:
                ends = [int(game["rows"][r, int(game["row_sizes"][r]) - 1]) for r in range(ROWS)]
                row = ends.index(number)
            took = game["taken"][taken : int(game["taken_count"])].tolist()
            self._rounds[-1]["placements"].append(
                [int(game["revealed_by"][placed]), number, row, took]
            )
        return WAITING if what is None else int(what)

    def _begin(self) -> None:
        """Note the deal of the game that starts now."""
        game = self.games[0]
        self._rounds = []
        self.deal = self._by_hand.get(int(game["match_game"]), {})
        if game["seed"] != NO_SEED:
            laid_out = clone(self.games)
            _shuffle(laid_out)
            self.deal = _deal_of(laid_out[0])

    def _record(self) -> dict[str, Any]:
        game = self.games[0]
        players = int(game["players"])
        rules = RULE_SETS[game["rules"]]
        points = game["points"][:players].astype(np.int64)
        return {
            "format": "oxx-game/1",
            "rules": rules,
            "deck": {"name": self.deck, "cards": deck_cards(self.decks[0])},
            "players": players,
            "seed": None if game["seed"] == NO_SEED else int(game["seed"]),
            "match": {
                "id": None,
                "game": int(game["match_game"]),
                "of": int(game["match_games"]),
                "points_before": game["match_points"][:players].tolist(),
            },
            "draw_piles": self.deal["draw_piles"],
            "rows": self.deal["rows"],
            "rounds": self.rounds(),
            "scores": points.tolist(),
            "winners": [seat for seat, rank in enumerate(ranks(points, rules)) if rank == 1],
        }


def _lay_out(
    games: NDArray[np.void],
    decks: NDArray[np.void],
    deal: tuple[list[int], list[int]],
    rng: int = 0,
) -> dict[str, Any]:
    """Start the game of GAME [1] from a deal as `check_deal` returns it; the deal as told.

    `rng` is where the match's later games are dealt from, unless they are set by hand too.
    """
    game = games[0]
    game["seed"], game["rng"] = NO_SEED, rng
    game["piles"][: len(deal[0])], game["rows"][:, 0] = deal
    told = _deal_of(game)
    engine.set_up_by_hand(games, decks)
    return told


def _deal_of(game: np.void) -> dict[str, Any]:
    """Draw piles and row cards of a record that is laid out but not set up."""
    players = int(game["players"])
    piles = game["piles"][: players * int(CARDS_DEALT[players])].reshape(players, -1)
    return {"draw_piles": piles.tolist(), "rows": game["rows"][:, 0].tolist()}


def _drawn_seed() -> int:
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(11))


def ranks(points: NDArray[np.integer[Any]], rules: str) -> list[int]:
    """Places for rulebook points [P]: 1 = best (fewest, in `positive` most), ties share."""
    better = (points if rules in ("base", "color") else -points).tolist()
    return [1 + sum(other < own for other in better) for own in better]


def whole(action: Any) -> int | None:
    """An action as an int: of an integer of any kind, or of an array of one; else None."""
    try:
        return operator.index(action)
    except TypeError:
        one = isinstance(action, np.ndarray) and action.size == 1 and action.dtype.kind in "iu"
        return int(action.item()) if one else None


def check_games(games_per_match: Any) -> int:
    """The games of a match as an int. Raises ValueError unless it is 1 to 1000."""
    if isinstance(games_per_match, bool) or not isinstance(games_per_match, (int, np.integer)):
        raise ValueError(f"games_per_match must be an integer, not {games_per_match!r}")
    if not 1 <= games_per_match <= MAX_GAMES:
        raise ValueError(f"games_per_match must be 1 to {MAX_GAMES}, not {games_per_match}")
    return int(games_per_match)


def check_seat(seat: Any, players: int) -> int:
    """`seat` as an int; compiled code checks no index. Raises ValueError unless there is such a
    seat."""
    if isinstance(seat, bool) or not isinstance(seat, (int, np.integer)):
        raise ValueError(f"the seat must be an integer, not {short(seat)}")
    if not 0 <= seat < players:
        raise ValueError(
            f"seat {short(seat)}: with {players} players the seats are 0 to {players - 1}"
        )
    return int(seat)


def check_seed(seed: Any) -> int:
    """The seed of a deal as an int. Raises ValueError unless it is 0 to 2**64-2."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise ValueError(f"the seed must be an integer from 0 to 2**64-2, not {seed!r}")
    if not 0 <= seed <= MAX_SEED:
        raise ValueError(f"the seed must be from 0 to 2**64-2, not {seed}")
    return int(seed)


def check_deal(
    players: int, draw_piles: Sequence[Sequence[int]], rows: Sequence[int]
) -> tuple[list[int], list[int]]:
    """All pile cards, seat by seat, and the row cards. Raises ValueError for what is no deal."""
    each = int(CARDS_DEALT[players])
    if len(draw_piles) != players:
        raise ValueError(f"draw_piles lists {len(draw_piles)} piles for {players} players")
    if len(rows) != ROWS:
        raise ValueError(f"rows lists {len(rows)} cards; {ROWS} start the rows")
    where: dict[int, str] = {}
    for place, numbers in [
        *((f"draw pile {s}", p) for s, p in enumerate(draw_piles)),
        ("rows", rows),
    ]:
        if place != "rows" and len(numbers) != each:
            raise ValueError(
                f"{place} has {len(numbers)} cards; with {players} players it has {each}"
            )
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
                raise ValueError(f"{place}: {number!r} is not a card number")
            if not 1 <= number <= NUMBERS:
                raise ValueError(f"{place}: there is no card {number}; cards are 1 to {NUMBERS}")
            if number in where:
                raise ValueError(f"{place}: card {number} is already in {where[int(number)]}")
            where[int(number)] = place
    return [int(n) for pile in draw_piles for n in pile], [int(n) for n in rows]
