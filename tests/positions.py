"""Games of the kernel made from drawings or lists, and read back as plain lists.

In a drawing a card is its number and its heads (b blue, y yellow, g green, r red, k black, w white;
`Bx` a Baron); every card that is not drawn shows one white head. A row is oldest first. Of a
seat's cards those before the bar are its hand, those behind it its draw pile, next drawn first;
`oxx` lists what the seat has taken. There may be fewer cards than R2 deals: so endings are drawn.

    row 0   10b 11by
    row 1   20r
    row 2   52Bx
    row 3   30k
    row 4   40w
    seat 0  60b 61yy | 62g 63g
    seat 1  70k 71k
    oxx 1   1rr 2g
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oxx_env import engine, rules
from oxx_env.game.views import View

LETTERS = "bygrkw"
BARONS = (52, 104)
CARD, ROW, OVER = rules.CARD_PHASE, rules.ROW_PHASE, rules.OVER
ROW_ACTION = rules.FIRST_ROW  # the action of row 0
PASS = rules.PASS


def plain_deck() -> list[list[int]]:
    """Every card shows one white head, the Barons one of each."""
    return [[1] * 6 if number in BARONS else [0] * 5 + [1] for number in range(1, 111)]


class Table:
    """One game of the kernel with its deck, to read and to play."""

    def __init__(self, games: Any, decks: Any) -> None:
        self.games = games  # GAME [1]
        self.decks = decks  # DECKS [D]
        self.game = games[0]
        self.deck = decks[int(self.game["deck"])]

    # ---- reading

    @property
    def players(self) -> int:
        return int(self.game["players"])

    @property
    def phase(self) -> int:
        return int(self.game["phase"])

    @property
    def rows(self) -> list[list[int]]:
        """The five rows, oldest card first."""
        sizes = self.game["row_sizes"].tolist()
        return [self.game["rows"][row, :size].tolist() for row, size in enumerate(sizes)]

    @property
    def hands(self) -> list[list[int]]:
        """Per seat, ascending; a picked card stays until the reveal."""
        sizes = self.game["hand_sizes"][: self.players].tolist()
        return [self.game["hands"][seat, :size].tolist() for seat, size in enumerate(sizes)]

    @property
    def piles(self) -> list[list[int]]:
        """Draw piles per seat, next drawn first."""
        return [
            [int(self.game["piles"][rules.pile_cell(self.game, seat, i)]) for i in range(size)]
            for seat, size in enumerate(self.game["pile_sizes"][: self.players].tolist())
        ]

    @property
    def oxx_piles(self) -> list[list[int]]:
        """Taken cards per seat, in order of taking."""
        count = int(self.game["taken_count"])
        piles: list[list[int]] = [[] for _ in range(self.players)]
        taken, owners = self.game["taken"].tolist(), self.game["taken_by"].tolist()
        for number, owner in zip(taken[:count], owners[:count], strict=True):
            piles[owner].append(number)
        return piles

    @property
    def points(self) -> list[int]:
        return self.game["points"][: self.players].tolist()

    @property
    def match_points(self) -> list[int]:
        return self.game["match_points"][: self.players].tolist()

    @property
    def revealed(self) -> list[list[int]]:
        """[seat, number] of the revealed cards still unplaced, lowest number first."""
        if self.phase != ROW:
            return []
        cards = zip(self.game["revealed_by"], self.game["revealed"], strict=True)
        return [[int(s), int(n)] for s, n in cards][int(self.game["placed"]) : self.players]

    @property
    def seen(self) -> set[int]:
        """The numbers that all players have seen."""
        low, high = self.game["seen"].tolist()
        return {number for number in range(128) if (high << 64 | low) >> number & 1}

    @property
    def deciders(self) -> list[int]:
        return [seat for seat in range(self.players) if rules.decides(self.game, seat)]

    def legal(self, seat: int) -> list[int]:
        actions = rules.legal_actions(self.game, self.deck, seat)
        return [action for action in range(rules.ACTIONS) if actions >> action & 1]

    def legal_rows(self, number: int) -> list[int]:
        """Where the card may go now."""
        found = rules.legal_rows(self.game, self.deck, number)
        return [row for row in range(rules.ROWS) if found >> row & 1]

    def overflows(self, number: int, row: int) -> bool:
        """R7, R8: must the card's player first take the row?"""
        return bool(rules.overflows(self.game, self.deck, number, row))

    def heads_taken(self, number: int, row: int) -> int:
        return int(rules.heads_taken(self.game, self.deck, number, row))

    # ---- playing

    def play(self, seat: int, action: int) -> None:
        """One decision, and whatever is forced after it, also in rounds to come."""
        assert action in self.legal(seat), f"{action} is not one of {self.legal(seat)}"
        rules.act(self.game, self.deck, seat, action)
        rules.advance(self.game, self.deck)

    def show(self, *numbers: int) -> None:
        """All pick these cards, seat by seat; this round runs on to the first choice or its end."""
        assert self.phase == CARD
        for seat, (hand, number) in enumerate(zip(self.hands, numbers, strict=True)):
            if len(hand) > 1:
                rules.act(self.game, self.deck, seat, hand.index(number))
            else:
                assert hand == [number], "a last card plays itself"
        self._finish_round()

    def choose_row(self, row: int) -> None:
        """The seat whose card is due chooses this row; this round runs on as with `show`."""
        assert self.phase == ROW
        seat, number = self.revealed[0]
        assert row in self.legal_rows(number)
        rules.act(self.game, self.deck, seat, ROW_ACTION + row)
        self._finish_round()

    def _finish_round(self) -> None:
        while rules.tick(self.game, self.deck) not in (rules.WAITING, rules.ROUND_ENDED):
            pass


def deal(
    draw_piles: Sequence[Sequence[int]],
    rows: Sequence[int],
    rule_set: str = "base",
    deck: Any = None,
) -> Table:
    """A deal set by hand: full draw piles (R2), first drawn first, and five row cards."""
    games = np.zeros(1, rules.GAME)
    game = games[0]
    game["seed"] = rules.NO_SEED
    game["players"] = len(draw_piles)
    game["rules"] = engine.rule_flags(rule_set)
    game["match_games"] = game["match_game"] = 1
    for seat, pile in enumerate(draw_piles):
        assert len(pile) == rules.CARDS_DEALT[len(draw_piles)]
        for index, number in enumerate(pile):
            game["piles"][rules.pile_cell(game, seat, index)] = number
    game["rows"][:, 0] = rows
    decks = engine.stack_decks([plain_deck() if deck is None else deck])
    engine.set_up_by_hand(games, decks)
    return Table(games, decks)


def position(rule_set: str, drawing: str) -> Table:
    """The drawn game, everybody about to choose a card."""
    deck = plain_deck()
    drawn: dict[str, list[list[list[int]]]] = {"row": [], "seat": []}
    oxx_piles: dict[int, list[int]] = {}
    for line in drawing.strip().splitlines():
        kind, index, *words = line.split()
        parts: list[list[int]] = [[]]
        for word in words:
            if word == "|":
                parts.append([])
                continue
            letters = word.lstrip("0123456789")
            number = int(word[: len(word) - len(letters)])
            deck[number - 1] = [letters.count(letter) for letter in LETTERS]
            if letters == "Bx":
                deck[number - 1] = [1] * 6
            parts[-1].append(number)
        if kind == "oxx":
            oxx_piles[int(index)] = parts[0]
        else:
            assert int(index) == len(drawn[kind])
            drawn[kind].append(parts)

    rows = [cards for (cards,) in drawn["row"]]
    seats = [[parts[0], parts[1] if len(parts) > 1 else []] for parts in drawn["seat"]]
    used = [n for cards in rows + [hand + pile for hand, pile in seats] for n in cards]
    used += [n for cards in oxx_piles.values() for n in cards]
    assert len(set(used)) == len(used), "a card is drawn twice"
    # A whole deal first, filled up with cards not drawn; then it is cut down to the drawing.
    filler = iter([number for number in range(1, 111) if number not in used])
    each = int(rules.CARDS_DEALT[len(seats)])
    draw_piles = [
        [*hand, *pile, *(next(filler) for _ in range(each - len(hand + pile)))]
        for hand, pile in seats
    ]
    table = deal(draw_piles, [row[0] for row in rows], rule_set, deck)
    game = table.game
    for seat, pile in oxx_piles.items():
        row = rows[0][0]
        rules.take_row(game, 0, seat)  # the row's first card is not meant: it is put back below
        game["taken_count"] -= 1
        game["points"][seat] -= sum(deck[row - 1])
        for number in pile:
            rules.put_on_row(game, table.deck, 0, number)
            rules.see(game, number)
        rules.take_row(game, 0, seat)
        rules.put_on_row(game, table.deck, 0, row)
    for row, cards in enumerate(rows):
        for number in cards[1:]:
            rules.put_on_row(game, table.deck, row, number)
            rules.see(game, number)
    for seat, (hand, pile) in enumerate(seats):
        for index in range(each):
            game["piles"][rules.pile_cell(game, seat, index)] = rules.NO_CARD
        game["pile_starts"][seat] = 0
        game["pile_sizes"][seat] = len(pile)
        for index, number in enumerate(pile):
            game["piles"][rules.pile_cell(game, seat, index)] = number
        game["hands"][seat] = rules.NO_CARD
        game["hands"][seat, : len(hand)] = sorted(hand)
        game["hand_sizes"][seat] = len(hand)
    rules.start_round(game)
    return table


def decisions(
    decks: Any, players: int, rule_set: str, games: int, choose: Callable[..., Any]
) -> list[tuple[View, Any]]:
    """Every decision of some games: the decider's view, and the full GAME [1].

    choose  plays, e.g. `engine.random_actions`
    """
    found = []
    batch = engine.new_games(range(games), decks, players, rule_set)
    who: Any = np.zeros(10 * games, engine.PENDING)
    while n := engine.pending(batch, who):
        for i in range(n):
            full = batch[who["game"][i]][None].copy()
            found.append((View.of(full, decks, int(who["seat"][i])), full))
        actions = np.zeros(n, np.int64)
        choose(batch, decks, who, n, actions)
        engine.step(batch, decks, who, n, actions, False)
    return found
