"""The rules of 6 nimmt! Baron Oxx a second time: slow, plain, and independent of the package.

Read it beside the rulebook: the clauses R1 to R13, V1 and V2a to V2f are cited where they are
told. Cards are their numbers, everything else is lists and ints, and nothing is imported but the
standard library, so that a test which compares the compiled kernel with this file compares two
separate tellings of the game.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

HAND_SIZE = 4
ROWS = 5
NUMBERS = 110
COLORS = ("blue", "yellow", "green", "red", "black", "white")
BARONS = (52, 104)
CARDS_DEALT = {2: 24, 3: 20, 4: 16, 5: 16, 6: 16, 7: 12, 8: 12, 9: 8, 10: 8}  # R2
RULES = ("base", "color", "positive", "color+positive")

SIXTH_CARD = 6  # R7
SIX_HEADS = 6  # R8
MOST_HEADS = 7  # of one color on one card

FIRST_ROW_ACTION = 4
PASS = 9


class Game:
    """One game, from the deal to the scores; whatever leaves no choice plays itself.

    `draw_piles` lists each seat's cards, first drawn first; `rows` the five starting cards;
    `deck[number - 1]` the six head counts of a card. Piles shorter than R2 deals are accepted, so
    that a test can set up an ending; `replay` insists on R2.
    """

    on_placement: Callable[[Game], None] | None = None  # called after every placement

    def __init__(
        self,
        players: int,
        rules: str,
        deck: Sequence[Sequence[int]],
        draw_piles: Sequence[Sequence[int]],
        rows: Sequence[int],
    ) -> None:
        if rules not in RULES:
            raise ValueError(f"rules {rules!r} are none of {', '.join(RULES)}")
        self.players = players
        self.rules = rules
        self.color = "color" in rules.split("+")
        self.positive = "positive" in rules.split("+")
        self.deck = [[int(heads) for heads in card] for card in deck]
        self.piles = [[int(number) for number in pile] for pile in draw_piles]
        self.rows = [[int(number)] for number in rows]
        self._check_deck()
        self._check_deal()

        self.phase = "card"
        self.hands: list[list[int]] = [[] for _ in range(players)]
        self.oxx_piles: list[list[int]] = [[] for _ in range(players)]
        self.picks: dict[int, int] = {}
        self.revealed: list[list[int]] = []
        self.rounds: list[dict[str, Any]] = []
        self.seen = {row[0] for row in self.rows}
        self.ended_by: str | None = None  # the clause that ended the game
        for seat in range(players):
            self._draw(seat)  # R3
        self._run_on()

    def _check_deck(self) -> None:
        """R1, and what a deck file may say."""
        if len(self.deck) != NUMBERS or any(len(card) != len(COLORS) for card in self.deck):
            raise ValueError(f"R1: a deck is {NUMBERS} cards of {len(COLORS)} head counts")
        for number, card in enumerate(self.deck, start=1):
            if min(card) < 0 or max(card) > MOST_HEADS or sum(card) == 0:
                raise ValueError(f"R1: card {number} cannot show the heads {card}")
            if number in BARONS and card != [1] * len(COLORS):
                raise ValueError(f"R1: card {number} is a Baron, one head of each color")

    def _check_deal(self) -> None:
        """R1, R2, R3: who plays with which cards."""
        if self.players not in CARDS_DEALT:
            raise ValueError(f"R2: {self.players} cannot play, only 2 to 10")
        if len(self.piles) != self.players or not all(self.piles):
            raise ValueError("R2: every player has a draw pile with cards")
        if len(self.rows) != ROWS:
            raise ValueError(f"R3: {ROWS} cards start the rows")
        dealt = [number for cards in self.piles + self.rows for number in cards]
        if len(set(dealt)) < len(dealt) or not all(1 <= number <= NUMBERS for number in dealt):
            raise ValueError(f"R1: every card is one of 1 to {NUMBERS} and there once")

    # ---- What a card is, and where it may go

    def heads(self, number: int) -> int:
        """All heads of a card: its points (R1)."""
        return sum(self.deck[number - 1])

    def shares_color(self, number: int, other: int) -> bool:
        """R6; a Baron shows all six colors and so shares one with every card."""
        one, two = self.deck[number - 1], self.deck[other - 1]
        return any(one[color] and two[color] for color in range(len(COLORS)))

    def matching_rows(self, number: int) -> list[int]:
        """R6: the rows whose end shares a color with the card."""
        return [r for r in range(ROWS) if self.shares_color(number, self.rows[r][-1])]

    def legal_rows(self, number: int) -> list[int]:
        """The rows the card may go to: R6; else any (R9), or none under V2b."""
        matching = self.matching_rows(number)
        if matching or self.positive:
            return matching
        return list(range(ROWS))

    def would_take(self, number: int, row: int) -> list[int]:
        """The cards its player takes by placing the card there, in row order; mostly none.

        ValueError where the card may not go to that row.
        """
        if row not in self.legal_rows(number):
            raise ValueError(f"card {number} may not go to row {row}")
        cards = self.rows[row]
        if not self.shares_color(number, cards[-1]):
            return list(cards)  # R9
        if not self.color and len(cards) + 1 >= SIXTH_CARD:
            return list(cards)  # R7, which V1 drops
        for color in range(len(COLORS)):
            if sum(self.deck[card - 1][color] for card in [*cards, number]) >= SIX_HEADS:
                return list(cards)  # R8
        return []

    # ---- Who decides, what is allowed, play

    def deciders(self) -> list[int]:
        """The seats with a decision now: two or more cards to pick from, or rows to choose from."""
        if self.phase == "card":
            return [
                seat
                for seat in range(self.players)
                if len(self.hands[seat]) >= 2 and seat not in self.picks
            ]
        if self.phase == "row" and self.revealed:
            seat, number = self.revealed[0]
            return [seat] if len(self.legal_rows(number)) >= 2 else []
        return []

    def legal(self, seat: int) -> list[int]:
        """0-3 hand slot, 4-8 row, 9 pass: the last for whoever has nothing to decide, only."""
        if seat not in range(self.players):
            raise ValueError(f"there is no seat {seat}")
        if seat not in self.deciders():
            return [PASS]
        if self.phase == "card":
            return list(range(len(self.hands[seat])))
        return [FIRST_ROW_ACTION + row for row in self.legal_rows(self.revealed[0][1])]

    def play(self, seat: int, action: int) -> None:
        """One decision and all that follows from it without another; a pass changes nothing.

        A picked card stays in `hands` until the reveal. ValueError on an illegal action.
        """
        if action not in self.legal(seat):
            raise ValueError(f"action {action} of seat {seat} is not one of {self.legal(seat)}")
        if action == PASS:
            return
        if self.phase == "card":
            self.picks[seat] = self.hands[seat][action]
        else:
            self._place(action - FIRST_ROW_ACTION)
        self._run_on()

    def _run_on(self) -> None:
        """Play whatever leaves no choice, until somebody decides or the game is over."""
        while self.phase != "over" and not self.deciders():
            if self.phase == "card":
                picks = self.picks
                self._reveal([picks.get(s, self.hands[s][0]) for s in range(self.players)])
            elif self.revealed:
                rows = self.legal_rows(self.revealed[0][1])
                self._place(rows[0] if rows else None)
            else:
                self._end_round()

    # ---- A round: reveal, place one by one, end

    def _reveal(self, cards: list[int]) -> None:
        """R4: all cards are revealed together; R5: they are placed from the lowest number up."""
        for seat, number in enumerate(cards):
            self.hands[seat].remove(number)
        self.revealed = sorted(([s, n] for s, n in enumerate(cards)), key=lambda card: card[1])
        self.seen.update(cards)
        self.picks = {}
        self.rounds.append({"cards": list(cards), "placements": []})
        self.phase = "row"

    def _place(self, row: int | None) -> None:
        """The lowest revealed card goes to a row, or (`None`, V2b) under its owner's pile."""
        seat, number = self.revealed[0]
        taken: list[int] = []
        if row is None:
            self.piles[seat].append(number)  # V2b
        else:
            taken = self.would_take(number, row)
            if taken:
                self.oxx_piles[seat].extend(taken)  # R10
                self.rows[row] = []
            self.rows[row].append(number)
        self.revealed.pop(0)
        self.rounds[-1]["placements"].append([seat, number, row, taken])
        if self.on_placement is not None:
            self.on_placement(self)

    def _end_round(self) -> None:
        """The game ends (R12, V2c, V2f), or empty hands are refilled (R11, V2e)."""
        held = [hand + pile for hand, pile in zip(self.hands, self.piles, strict=True)]
        if any(not cards for cards in held):
            self.ended_by = "V2c" if self.positive else "R12"
        elif self.positive and not any(self.matching_rows(n) for cards in held for n in cards):
            self.ended_by = "V2f"
        if self.ended_by:
            self.phase = "over"
            return
        for seat in range(self.players):
            if not self.hands[seat]:
                self._draw(seat)
        self.phase = "card"

    def _draw(self, seat: int) -> None:
        """Four cards from the own pile (R3, R11), or what is left of it (V2e)."""
        self.hands[seat] = sorted(self.piles[seat][:HAND_SIZE])
        self.piles[seat] = self.piles[seat][HAND_SIZE:]

    # ---- Points

    @property
    def points(self) -> list[int]:
        """The rulebook's points per seat so far: heads taken (R12, V2a), less V2d at the end."""
        points = [sum(self.heads(number) for number in pile) for pile in self.oxx_piles]
        if self.positive and self.phase == "over":
            for seat in range(self.players):
                left = self.hands[seat] + self.piles[seat]
                points[seat] -= sum(self.heads(number) for number in left)  # V2d
        return points

    def scores(self) -> list[int]:
        """The points per seat: fewest win (R12), most win in `positive` (V2d)."""
        return self.points

    def ranks(self) -> list[int]:
        """Per seat 1 + how many are better: 1 is best, equals share (R12, V2d)."""
        goodness = [points if self.positive else -points for points in self.points]
        return [1 + sum(other > own for other in goodness) for own in goodness]

    def winners(self) -> list[int]:
        """The seats that share the best points (R12, V2d)."""
        return [seat for seat, rank in enumerate(self.ranks()) if rank == 1]


def match_points(scores: Sequence[Sequence[int]]) -> list[int]:
    """R13: the points per seat of several games, added up."""
    return [sum(points) for points in zip(*scores, strict=True)]


# ---- A record, followed card by card


def replay(record: dict[str, Any]) -> Game:
    """Play a record (`oxx-game/1`) by the rules above and return the finished game.

    ValueError at the first difference, naming round and clause.
    """
    told = _told(record, "deal", "record", ("rules", "players", "deck", "draw_piles", "rows"))
    rules, players, deck, draw_piles, rows = told
    (cards,) = _told(deck, "deal", "deck", ("cards",))
    _demand(players in CARDS_DEALT, "deal", "R2", f"{players} players")
    dealt = [len(pile) for pile in draw_piles]
    _demand(
        dealt == [CARDS_DEALT[players]] * players,
        "deal",
        "R2",
        f"piles of {dealt} cards, not {CARDS_DEALT[players]} for each of {players} players",
    )
    try:
        game = Game(players, rules, cards, draw_piles, rows)
    except ValueError as error:
        raise ValueError(f"deal, {error}") from None

    rounds, scores, winners = _told(record, "game", "record", ("rounds", "scores", "winners"))
    for number, one_round in enumerate(rounds, start=1):
        _replay_round(game, one_round, f"round {number}")
    _demand(
        game.phase == "over",
        f"round {len(rounds) + 1}",
        "V2c" if game.positive else "R12",
        "missing, the game is not over",
    )
    where = f"after round {len(rounds)}"
    clause = "V2d" if game.positive else "R12"
    _demand(scores == game.scores(), where, clause, f"scores {scores}, not {game.scores()}")
    _demand(winners == game.winners(), where, clause, f"winners {winners}, not {game.winners()}")
    return game


def _replay_round(game: Game, one_round: dict[str, Any], where: str) -> None:
    """Follow one round of a record from the reveal to the refill."""
    _demand(game.phase == "card", where, game.ended_by or "R12", "the game is over")
    cards, placements = _told(one_round, where, "R4", ("cards", "placements"))
    _demand(len(cards) == game.players, where, "R4", f"{len(cards)} cards of {game.players} seats")
    for seat, number in enumerate(cards):
        hand = game.hands[seat]
        _demand(number in hand, where, "R4", f"seat {seat} plays {number}, its hand is {hand}")
    game._reveal(cards)
    for placement in placements:
        _demand(bool(game.revealed), where, "R5", f"{placement} is more than was revealed")
        _replay_placement(game, placement, where)
    _demand(not game.revealed, where, "R5", f"{game.revealed} not placed")
    game._end_round()


def _replay_placement(game: Game, placement: Sequence[Any], where: str) -> None:
    """Follow one `[seat, number, row or None, taken]` of a record."""
    _demand(len(placement) == 4, where, "R5", f"{placement} is no placement")
    seat, number, row, taken = placement
    due = game.revealed[0]
    _demand([seat, number] == due, where, "R5", f"{[seat, number]} placed, it is {due}'s turn")
    rows = game.legal_rows(number)
    fits = bool(game.matching_rows(number))
    if not rows:
        _demand(row is None, where, "V2b", f"card {number} fits no row, not row {row}")
        _demand(taken == [], where, "V2b", f"card {number} takes {taken} from under the pile")
        game._place(None)
        return
    _demand(row in rows, where, "R6" if fits else "R9", f"card {number} on row {row}, not {rows}")
    takes = game.would_take(number, row)
    _demand(
        taken == takes,
        where,
        ("V1/R8" if game.color else "R7/R8") if fits else "R9",
        f"card {number} on row {row} takes {taken}, not {takes}",
    )
    game._place(row)


def _demand(holds: bool, where: str, clause: str, what: str) -> None:
    """ValueError with place and clause unless it holds; never optimised away like an assert."""
    if not holds:
        raise ValueError(f"{where}, {clause}: {what}")


def _told(part: dict[str, Any], where: str, clause: str, keys: Sequence[str]) -> list[Any]:
    """The values of the keys; ValueError for the first that is missing."""
    for key in keys:
        _demand(isinstance(part, dict) and key in part, where, clause, f"no {key!r}")
    return [part[key] for key in keys]
