"""The text of a position: written from a view, and read into the JSON form (see `position`)."""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from oxx_env.game.rules import MAX_PLAYERS, MIN_PLAYERS, NO_CARD, ROWS, RULE_SETS, deck_cards
from oxx_env.game.views import View
from oxx_env.lib.texts import short
from oxx_env.notation.position_facts import Path, PositionError
from oxx_env.notation.wording import heads_on

# --- writing --------------------------------------------------------------------------------------


def to_text(view: View) -> str:
    """One line that `from_text` reads back to the same view, without its history.

    A deck that is not shipped is given by its name only.
    """
    game, players = view.game, view.players
    hand_sizes = game["hand_sizes"][:players].tolist()
    pile_sizes = game["pile_sizes"][:players].tolist()
    head = f"{view.rules} {players}p seat {view.seat} deck {_word(view.deck)}"
    parts = [f"{head} round {int(game['round'])}"]
    picked = int(game["picks"][view.seat]) != NO_CARD and len(view.hand) > 1
    if picked or view.phase == "over":
        parts.append("over" if view.phase == "over" else "picked")
    parts.append(f"rows {' '.join(_joined(row) for row in view.rows)}")
    parts.append(f"hand {' '.join(map(str, view.hand)) or '-'}")
    if view.revealed:
        revealed = (f"{seat}:{number}" for seat, number in view.revealed)
        parts.append(f"revealed {' '.join(revealed)}")
    deck = deck_cards(view.decks[0])
    if any(view.oxx_piles):
        parts.append(f"taken {_labelled(view.oxx_piles)}")
    if view.scores != [heads_on(pile, deck) for pile in view.oxx_piles]:
        parts.append(f"points {' '.join(map(str, view.scores))}")
    parts.append(f"hands {_sizes(hand_sizes)}")
    parts.append(f"piles {_sizes(pile_sizes)}")
    if any(view.known_hand):
        parts.append(f"known {_labelled(view.known_hand)}")
    if any(view.returned):
        parts.append(f"returned {_labelled(view.returned)}")
    match_game, of = int(game["match_game"]), int(game["match_games"])
    if of > 1:
        before = game["match_points"][:players].tolist()
        parts.append(f"game {match_game}/{of} before {' '.join(map(str, before))}")
    return " | ".join(parts)


def _joined(numbers: Iterable[int]) -> str:
    return "-".join(map(str, numbers)) or "-"


def _labelled(lists: Sequence[Sequence[int]]) -> str:
    return " ".join(f"{seat}:{_joined(numbers)}" for seat, numbers in enumerate(lists) if numbers)


def _sizes(sizes: list[int]) -> str:
    return " ".join(map(str, sizes if len(set(sizes)) > 1 else sizes[:1]))


def _word(name: str) -> str:
    return name if re.fullmatch(r'[^\s|",;]+', name) else json.dumps(name, ensure_ascii=False)


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Token:
    text: str
    start: int
    after: str = ""  # the comma or semicolon behind it

    @property
    def end(self) -> int:
        return self.start + len(self.text)


# A text in quotes; or a word, the marks behind it apart: it ends at a semicolon, and at a comma
# before the next seat's `2:`.
_TOKEN = re.compile(r'("(?:[^"\\\n]|\\.)*"|(?:,(?!,*(?:[\s|"]|$|[0-9]+:))|[^\s|";,])+|")([;,]*)')
_KEYS = {  # word -> key of the JSON
    "rows": "rows",
    "hand": "hand",
    "revealed": "revealed",
    "taken": "oxx_piles",
    "points": "scores",
    "hands": "hand_sizes",
    "piles": "pile_sizes",
    "known": "known_hand",
    "returned": "returned",
    "before": "before",
    "seat": "seat",
    "deck": "deck",
    "round": "round",
    "game": "game",
    "picked": "picked",
    "over": "over",
}


def _pieces(token: _Token) -> list[_Token]:
    """The parts of a word between its commas."""
    found = re.finditer(r"[^,]+", token.text)
    return [_Token(piece.group(), token.start + piece.start()) for piece in found]


def _rows_of(words: list[_Token]) -> list[list[_Token]]:
    """The words of each row: five words, or five groups of words between semicolons or commas."""
    if len(words) != ROWS:
        for mark in ";,":
            groups: list[list[_Token]] = [[]]
            for word in words:
                for index, piece in enumerate(_pieces(word) if mark == "," else [word]):
                    if index:
                        groups.append([])
                    groups[-1].append(piece)
                if word.after == mark:
                    groups.append([])
            groups = [group for group in groups if group]
            if len(groups) == ROWS:
                return groups
    return [[word] for word in words]


class Parser:
    """Reads a position text: `data` is its JSON form, `span` is where a value stands."""

    def __init__(self, text: str, otherwise: Mapping[str, Any]) -> None:
        self.text = text
        self.data: dict[str, Any] = {"rules": "base", "seat": 0, **copy.deepcopy(dict(otherwise))}
        self._spans: dict[Path, tuple[int, int]] = {}
        self._given: set[str] = set()
        parts = self._parts()
        for part, words in parts:
            for token in words:
                if part.text.lower() != "deck" and re.fullmatch(r"[A-Za-z+]{2,}", token.text):
                    self._unknown(token)
        if "players" not in self.data:
            self._fail("how many players? Write for example 4p", ())
        for key in ("rows", "hand"):
            if key not in self._given:
                self._fail(f"the position lacks its {key}", ())
        self._players = min(max(self.data["players"], MIN_PLAYERS), MAX_PLAYERS)
        for token, words in sorted(parts, key=lambda part: part[0].text.lower() != "game"):
            key = _KEYS[token.text.lower()]
            if words:
                self._spans[(key,)] = (words[0].start, words[-1].end)
            getattr(self, f"_read_{key}", self._read_by_seat)(token, words)

    def _parts(self) -> list[tuple[_Token, list[_Token]]]:
        """Each key word with the words after it; rule set and players are read at once."""
        parts: list[tuple[_Token, list[_Token]]] = []
        for found in _TOKEN.finditer(self.text):
            token = _Token(found[1], found.start(), found[2][:1])
            word = token.text.lower()
            if word in RULE_SETS:
                self._once("rules", token)
                self.data["rules"] = word
            elif re.fullmatch(r"[0-9]+p", word):
                self._once("players", token)
                self.data["players"] = int(word[:-1]) if len(word) < 10 else 10**9
            elif word in _KEYS and not (
                parts and parts[-1][0].text.lower() == "deck" and not parts[-1][1]
            ):
                self._once(_KEYS[word], token)
                parts.append((token, []))
            elif not parts:
                self._unknown(token)
            else:
                parts[-1][1].append(token)
        return parts

    def span(self, path: Path) -> tuple[int, int]:
        """Where the value stands, or the smallest part of the text around it; else the end."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._spans:
                return self._spans[path[:length]]
        end = len(self.text.rstrip())
        return end, end + 1

    def _fail(self, problem: str, place: _Token | Path) -> NoReturn:
        span = (place.start, place.end) if isinstance(place, _Token) else self.span(place)
        path = () if isinstance(place, _Token) else place
        raise PositionError(problem, path, self.text, span)

    def _once(self, key: str, token: _Token) -> None:
        if key in self._given:
            self._fail(f"{key.replace('_', ' ')} given twice", token)
        self._given.add(key)
        self._spans[(key,)] = (token.start, token.end)

    def _unknown(self, token: _Token) -> NoReturn:
        known = [*RULE_SETS, *_KEYS]
        close = difflib.get_close_matches(token.text.lower(), known, n=1)
        counts = [str(count) for count in range(MIN_PLAYERS, MAX_PLAYERS + 1)]
        if token.text in counts and "players" not in self._given:
            close = [f"{token.text}p"]  # "4 players"
        hint = f"did you mean {close[0]!r}?" if close else f"words are {', '.join(known)}"
        self._fail(f"unknown word {short(token.text)}; {hint}", token)

    def _number(self, token: _Token) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,12}", token.text, re.ASCII):
            self._fail(f"{short(token.text)} is no number", token)
        return int(token.text)

    def _one(self, token: _Token, words: list[_Token]) -> _Token:
        if not words:
            self._fail(f"after {token.text!r} something is missing", token)
        if len(words) > 1:
            self._unknown(words[1])
        return words[0]

    def _note(self, path: Path, token: _Token) -> None:
        self._spans[path] = (token.start, token.end)

    def _numbers(self, token: _Token, path: Path) -> list[int]:
        """Cards joined by hyphens or commas; `-` alone is none, `?` a card not remembered."""
        numbers: list[int] = []
        if token.text == "-":
            return numbers
        at = token.start
        for piece in re.split(r"[-,]", token.text):
            part = _Token(piece, at)
            at += len(piece) + 1
            if piece == "?" and path[0] == "oxx_piles":
                continue
            if not piece and part.start >= token.end and token.text.endswith(","):
                continue
            if not piece:
                self._fail("a card number is missing here", _Token(" ", min(at, token.end) - 1))
            self._note((*path, len(numbers)), part)
            numbers.append(self._number(part))
        return numbers

    def _label(self, token: _Token) -> tuple[int, _Token]:
        """`2:17` -> 2 and the rest."""
        seat, colon, rest = token.text.partition(":")
        number = self._number(_Token(seat, token.start)) if colon and rest else -1
        if not colon or not rest:
            self._fail(f"{short(token.text)} should be seat:cards, for example 2:17", token)
        if not 0 <= number < self._players:
            problem = f"there is no seat {number}; seats are 0 to {self._players - 1}"
            self._fail(problem, _Token(seat, token.start))
        return number, _Token(rest, token.start + len(seat) + 1)

    # ---- the parts

    def _read_number(self, token: _Token, words: list[_Token]) -> None:
        self.data[token.text.lower()] = self._number(self._one(token, words))

    _read_seat = _read_round = _read_number

    def _read_deck(self, token: _Token, words: list[_Token]) -> None:
        word = self._one(token, words)
        self._note(("deck",), word)
        self.data["deck"] = word.text
        if word.text.startswith('"'):
            try:
                self.data["deck"] = json.loads(word.text)
            except ValueError:
                self._fail("a name in quotes should end with a quote", word)

    def _read_game(self, token: _Token, words: list[_Token]) -> None:
        word = self._one(token, words)
        game, slash, of = word.text.partition("/")
        if not slash:
            self._fail(f"{short(word.text)} should be game/games, for example 2/3", word)
        self._note(("match",), word)
        self.data.setdefault("match", {}).update(
            game=self._number(_Token(game, word.start)),
            of=self._number(_Token(of, word.start + len(game) + 1)),
        )

    def _read_before(self, token: _Token, words: list[_Token]) -> None:
        self._read_by_seat(token, words)
        self.data.setdefault("match", {})["points"] = self.data.pop("before")
        for seat, word in enumerate(words):
            self._note(("match", "points", seat), word)

    def _read_flag(self, token: _Token, words: list[_Token]) -> None:
        if words:
            self._unknown(words[0])
        self.data |= {"phase": "over"} if token.text.lower() == "over" else {"picked": True}

    _read_picked = _read_over = _read_flag

    def _read_rows(self, token: _Token, words: list[_Token]) -> None:
        rows: list[list[int]] = []
        for row, cards_of_it in enumerate(_rows_of(words)):
            rows.append([])
            for word in cards_of_it:
                self._note(("rows", row), word)
                numbers = self._numbers(word, ("in rows",))
                for at, number in enumerate(numbers):
                    self._spans[("rows", row, len(rows[row]))] = self._spans[("in rows", at)]
                    rows[row].append(number)
            first, last = cards_of_it[0], cards_of_it[-1]
            self._spans[("rows", row)] = first.start, last.end
        self.data["rows"] = rows

    def _read_hand(self, token: _Token, words: list[_Token]) -> None:
        numbers: list[int] = []
        for word in words:
            for at, number in enumerate(self._numbers(word, ("in hand",))):
                self._spans[("hand", len(numbers))] = self._spans[("in hand", at)]
                numbers.append(number)
        self.data["hand"] = numbers

    def _read_revealed(self, token: _Token, words: list[_Token]) -> None:
        cards = []
        for word in words:
            seat, card = self._label(word)
            cards.append((self._number(card), seat, word))
        cards.sort(key=lambda entry: entry[:2])
        self.data["revealed"] = [[seat, number] for number, seat, _ in cards]
        for index, (_, _, word) in enumerate(cards):
            self._note(("revealed", index), word)

    def _read_by_seat(self, token: _Token, words: list[_Token]) -> None:
        """A list for each seat (cards), or a number for each (sizes, points)."""
        key = _KEYS[token.text.lower()]
        lists = key in ("oxx_piles", "known_hand", "returned")
        values: list[Any] = [[] if lists else 0 for _ in range(self._players)]
        labelled = any(":" in word.text for word in words)
        if not labelled and not lists:
            words = [piece for word in words for piece in _pieces(word)]
        if not labelled and len(words) == 1 and key in ("hand_sizes", "pile_sizes"):
            words = words * self._players
        if not labelled and len(words) != self._players:
            problem = f"{len(words)} entries for {self._players} players"
            self._fail(f"{problem}; write one for each, or seat:...", (key,))
        if labelled and key in ("hand_sizes", "pile_sizes") and len(words) != self._players:
            self._fail(f"the sizes of all {self._players} seats are needed", (key,))
        seats: set[int] = set()
        for index, word in enumerate(words):
            seat, rest = self._label(word) if labelled else (index, word)
            if seat in seats:
                self._fail(f"seat {seat} given twice", word)
            seats.add(seat)
            self._note((key, seat), rest)
            values[seat] = self._numbers(rest, (key, seat)) if lists else self._number(rest)
        self.data[key] = values
