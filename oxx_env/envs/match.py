"""What all environments share: a table that pays rewards, checks actions, draws itself.

`Match` knows seats, not agents; the adapters give the seats names and keep their own protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from oxx_env.envs import kernels
from oxx_env.envs.kernels import ENDED, ILLEGAL, REWARDS, STATE_CARD, end_table, step_table
from oxx_env.game import cards
from oxx_env.game.observe import HIGH, LOW, OBS
from oxx_env.game.replay import Start
from oxx_env.game.rules import ACTIONS, CARDS_DEALT, HAND_SIZE, PASS
from oxx_env.game.table import Mark, Table, as_integer, check_seat, check_seed
from oxx_env.game.views import View
from oxx_env.notation import records
from oxx_env.notation.position import deck_entry, from_text, view_from_dict

ILLEGAL_ACTION = ("raise", "substitute", "terminate")
RENDER_MODES = ("human", "rgb_array", "ansi")
METADATA: dict[str, Any] = {
    "name": "baron_oxx_v0",
    "render_modes": list(RENDER_MODES),
    "render_fps": 2,
}
SUBSTITUTES = 0x5B57  # the stream of substituted actions is SeedSequence([seed, this])


class ResetNeeded(gymnasium.error.ResetNeeded, RuntimeError):
    """Used before the first `reset` or after the end of the match."""


class IllegalAction(gymnasium.error.InvalidAction, ValueError):
    """Not an action, or one that the rules do not allow now."""


class Match:
    """A `Table` (`.table`) with rewards, for `num_players` seats.

    num_players, rules, deck, games_per_match   see `Table`
    reward          `points`: change of the rulebook's points, negative heads in `base` and `color`;
                    `relative`: that minus the mean of the others'; `win`: at the end of the match
                    the share of the victory
    illegal_action  `raise`: an error; `substitute`: a uniformly random legal action instead, from
                    a stream of its own, so that legal play is unaffected; `terminate`: the match
                    ends, the offenders share the last place, all others the first (see
                    `kernels.end_by_illegal` for the points)
    render_mode     None, `human`, `rgb_array` or `ansi`

    Raises ValueError for anything else.
    """

    def __init__(
        self,
        num_players: int,
        rules: str,
        deck: cards.DeckSpec,
        games_per_match: int,
        reward: str,
        illegal_action: str,
        render_mode: str | None,
    ) -> None:
        self.table = Table(num_players, rules, deck, games_per_match)
        self.players = self.table.players
        self.reward = one_of("reward", reward, REWARDS)
        one_of("illegal_action", illegal_action, ILLEGAL_ACTION)
        self.illegal_action = illegal_action
        self.offenders: list[int] = []  # whose illegal actions ended the match
        if render_mode is not None:
            one_of("render_mode", render_mode, RENDER_MODES)
        self.render_mode = render_mode
        self.seed = 0  # of the running match
        # Seeds of the matches that are given none; made when needed, since that takes its time.
        self._deals: np.random.Generator | None = None
        self._deals_seed: int | None = None
        self._substitutes: np.random.Generator | None = None
        self._window: Any = None

    # --- dealing ---

    def deal(self, seed: int | None, options: dict[str, Any] | None) -> None:
        """Start a match; a seed given also decides all later deals without one.

        The options `deck`, `draw_piles` and `rows` set the deal by hand (see `Table.deal`). Or the
        match starts in mid-game, hidden cards dealt by the seed: `position` is a text or the dict
        of a view (see `notation`); `record` and `round` are a record and how many of its rounds are
        finished. Other options are ignored. Raises ValueError, and nothing has happened, for a
        bad seed, deal or position.
        """
        if options is not None and not isinstance(options, dict):
            raise ValueError(f"options must be a dict or None, not {options!r}")
        given = {key: value for key, value in (options or {}).items() if value is not None}
        start = self._start(given)
        by_hand = {key: _numbers(key, given[key]) for key in ("draw_piles", "rows") if key in given}
        if seed is not None:
            chosen = check_seed(seed)
            self._deals, self._deals_seed = None, chosen
        else:
            if self._deals is None:
                self._deals = np.random.default_rng(self._deals_seed)
            chosen = int(self._deals.integers(1 << 53))  # exact in every JSON reader
        if start is None:
            self.table.deal(chosen, given.get("deck"), **by_hand)
        else:
            self.table.start(start, chosen)
        self.seed, self.offenders, self._substitutes = chosen, [], None

    def _start(self, options: dict[str, Any]) -> Start | None:
        """Where the match starts by the options; None: at the deal."""
        kinds = [key for key in ("position", "record", "draw_piles") if key in options]
        if len(kinds) > 1:
            raise ValueError(f"options: {kinds[0]} and {kinds[1]} are two starts; choose one")
        if ("record" in options) != ("round" in options):
            raise ValueError(
                "options: record and round belong together; round is how many rounds of the record "
                "are finished at the start"
            )
        if "record" in options:
            if "deck" in options:
                raise ValueError("options: a record has its deck in it; leave deck out")
            record, rounds = options["record"], as_integer(options["round"])
            if isinstance(record, str | bytes):
                record = records.parse_record(record)
            return records.start_at(record, options["round"] if rounds is None else rounds)
        if "position" not in options:
            return None
        position, deck = options["position"], options.get("deck")
        otherwise: dict[str, Any] = {
            "rules": self.table.rules,
            "match": {"game": 1, "of": self.table.games_per_match},
        }
        if deck is None and not callable(self.table.deck_spec):
            otherwise["deck"] = deck_entry(self.table.deck_spec)
        if isinstance(position, str):
            return Start.at(from_text(position, deck, otherwise))
        if not isinstance(position, dict):
            raise ValueError(f"options: position must be a text or a view's dict, not {position!r}")
        position = {**otherwise, **{k: v for k, v in position.items() if v is not None}}
        if deck is not None:
            position["deck"] = deck_entry(deck)
        return Start.at(view_from_dict(position))

    def check_dealt(self, what: str) -> None:
        """Raises ResetNeeded before the first deal."""
        if not self.table.dealt:
            raise ResetNeeded(f"{what} before the first deal: call reset() first")

    # --- playing ---

    def step(
        self,
        actions: bytes,
        first: int,
        obs: NDArray[np.float32],
        masks: NDArray[np.int8],
        rewards: NDArray[np.float64],
    ) -> bool:
        """The seats from `first` on do `actions`, one byte each; what is forced runs on.

        Writes observations [P, OBS] (none for an array [0, OBS]), masks [P, A] (likewise) and
        rewards [P]. Returns whether the match is over. Raises IllegalAction, and then nothing has
        happened.

        What calls it takes a `mark` before and calls `undo` if anything is raised afterwards.
        """
        table = self.table
        games, decks = table.games, table.decks
        code = step_table(games, decks, actions, first, self.reward, obs, masks, rewards)
        while code >= ILLEGAL:
            seat = code - ILLEGAL
            action = actions[seat - first]
            if self.illegal_action == "raise":
                raise self.illegal(seat, action)
            if self.illegal_action == "terminate":
                offenders = [s for s, a in enumerate(actions, first) if a not in table.legal(s)]
                self.terminate(offenders, obs, masks, rewards)
                return True
            changed = bytearray(actions)
            changed[seat - first] = self.substitute(seat)
            actions = bytes(changed)
            code = step_table(games, decks, actions, first, self.reward, obs, masks, rewards)
        table.note(first, actions)
        return bool(code == ENDED)

    def terminate(
        self,
        offenders: list[int],
        obs: NDArray[np.float32],
        masks: NDArray[np.int8],
        rewards: NDArray[np.float64],
    ) -> None:
        """End the match because of these seats' illegal actions; writes what `step` writes."""
        self.offenders = offenders
        bits = sum(1 << seat for seat in offenders)
        table = self.table
        end_table(table.games, table.decks, bits, self.reward, obs, masks, rewards)

    def substitute(self, seat: int) -> int:
        """A uniformly random legal action."""
        legal = self.table.legal(seat)
        if len(legal) == 1:
            return legal[0]
        if self._substitutes is None:
            self._substitutes = np.random.default_rng([self.seed, SUBSTITUTES])
        return legal[int(self._substitutes.integers(len(legal)))]

    def illegal(self, seat: int, action: Any, name: str = "player_") -> IllegalAction:
        """The error that names agent, action and the legal ones."""
        return IllegalAction(illegal_text(f"{name}{seat}", action, self.table.legal(seat)))

    def as_action(self, seat: int, action: Any, name: str = "player_") -> int:
        """The action as an int that fits a byte. Raises IllegalAction unless it is an integer."""
        number = as_integer(action)
        if number is None:
            raise self.illegal(seat, action, name)
        if 0 <= number < ACTIONS:
            return number
        if self.illegal_action != "raise":
            return ACTIONS  # never legal
        raise self.illegal(seat, number, name)

    # --- an exception or Ctrl-C in the middle of a step ---

    def mark(self) -> tuple[Mark, Any]:
        """Where the match stands now, for `undo`."""
        substitutes = self._substitutes
        return self.table.mark(), substitutes and substitutes.bit_generator.state

    def undo(self, mark: tuple[Mark, Any]) -> None:
        """Go back to where the same match stood at a `mark`, as if nothing had happened since."""
        self.table.undo(mark[0])
        self.offenders = []
        if mark[1] is None:
            self._substitutes = None
        elif self._substitutes is not None:
            self._substitutes.bit_generator.state = mark[1]

    # --- looking ---

    def observe(self, seat: int) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        """Observation [OBS] and mask [A] of one seat, new arrays. Raises ValueError for a seat that
        is not at the table, ResetNeeded before the first deal."""
        self.check_dealt("observe()")
        obs, masks = self._write(check_seat(seat, self.players), 1, 1)
        return obs[0], masks[0]

    def observe_all(self) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        """Observations [P, OBS] and masks [P, A], new arrays."""
        return self._write(0, self.players, self.players)

    def masks(self) -> NDArray[np.int8]:
        """All seats' legal actions [P, A], a new array."""
        return self._write(0, 0, self.players)[1]

    def _write(
        self, first: int, observed: int, masked: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        """Observations and masks of so many seats from `first` on."""
        obs, masks = np.empty((observed, OBS), np.float32), np.empty((masked, ACTIONS), np.int8)
        kernels.write_seats(self.table.games, self.table.decks, first, obs, masks)
        return obs, masks

    def results(self) -> list[dict[str, Any]]:
        """For each seat the match's `scores`, `ranks` and `winners`, in lists of its own, and
        `illegal`, the offenders' seats, where illegal actions ended it."""
        table = self.table
        lists = {"scores": table.scores(), "ranks": table.ranks(), "winners": table.winners()}
        if self.offenders:
            lists["illegal"] = self.offenders
        return [{key: value[:] for key, value in lists.items()} for _ in range(self.players)]

    def add_results(self, infos: dict[str, dict[str, Any]]) -> None:
        """Put `results` into the infos of the agents, which stand there by seat."""
        for info, results in zip(infos.values(), self.results(), strict=True):
            info |= results

    @property
    def state_size(self) -> int:
        """Entries of `state`."""
        cells = int(CARDS_DEALT[self.players]) * STATE_CARD
        return self.players * (OBS + HAND_SIZE + cells)

    def state(self) -> NDArray[np.float32]:
        """The whole game with all that is hidden, for centralised critics.

        Float32, in this order: the observations of all seats [P, OBS] (each holds its own hand);
        the secret picks [P, 4], 1 in the slot picked; the draw piles [P, cards dealt to each, 7],
        next drawn first, of each card its number/110 and its heads of each color/3.
        """
        self.check_dealt("state()")
        out = np.empty(self.state_size, np.float32)
        table, seen = self.table, self.players * OBS
        no_masks = np.empty((0, ACTIONS), np.int8)
        kernels.write_seats(table.games, table.decks, 0, out[:seen].reshape(-1, OBS), no_masks)
        kernels.write_hidden(table.games, table.decks, out[seen:])
        return out

    def records(self) -> list[dict[str, Any]]:
        """The finished games of the match as records (`oxx-game/1`)."""
        self.check_dealt("records()")
        return records.records_of(self.table)

    def view(self, seat: int) -> View:
        """What the seat knows."""
        self.check_dealt("view()")
        return self.table.view(seat)

    # --- drawing ---

    def render(self, seat: int = 0) -> Any:
        """Draw the table as `seat` sees it: text for `ansi`, uint8 [H, W, 3] for `rgb_array`."""
        self.check_dealt("render()")
        if self.render_mode is None:
            gymnasium.logger.warn(
                "render() does nothing without a render_mode; choose one of "
                f"{', '.join(RENDER_MODES)} when making the environment"
            )
            return None
        from oxx_env.show import render

        view = self.view(seat)
        if self.render_mode == "ansi":
            return render.text(view, color=True)
        if self.render_mode == "rgb_array":
            return render.rgb_array(view)
        if self._window is None:
            self._window = render.Window(fps=METADATA["render_fps"])
        self._window.show(view)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def __getstate__(self) -> dict[str, Any]:
        # A window belongs to one process and one environment: a copy opens its own when it draws.
        return {**vars(self), "_window": None}


def illegal_text(agent: str, action: Any, legal: Sequence[int]) -> str:
    """What is wrong with an action, and which ones are legal."""
    if list(legal) == [PASS]:
        can = "it has nothing to decide now, so only 9 (pass) is legal"
    elif legal[0] < HAND_SIZE:
        can = f"legal are the hand slots {', '.join(map(str, legal))}"
    else:
        can = f"legal are the rows' actions {', '.join(map(str, legal))}"
    if isinstance(action, int | np.integer):
        inside = 0 <= action < ACTIONS
        what = f"action {action} is " + ("illegal" if inside else f"not in 0..{ACTIONS - 1}")
    else:
        what = f"action {action!r} is not an integer from 0 to {ACTIONS - 1}"
    return f"{agent}: {what}; {can}"


def one_of(option: str, value: Any, choices: Sequence[str]) -> int:
    """The place of a name among its choices. Raises ValueError for another."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"unknown {option} {value!r}: choose one of {', '.join(choices)}")
    return choices.index(value)


def _numbers(option: str, value: Any) -> Any:
    """Plain lists of a deal set by hand. Raises ValueError for anything that is not lists."""
    try:
        plain = [list(item) if option == "draw_piles" else item for item in value]
    except TypeError:
        what = "a list of card numbers for each seat" if option == "draw_piles" else "five numbers"
        raise ValueError(f"options: {option} must be {what}, not {value!r}") from None
    return plain


def observation_box() -> Any:
    """The space of an observation, float32 [OBS]."""
    return spaces.Box(LOW, HIGH, (OBS,), np.float32)


def mask_box() -> Any:
    """The space of a mask, int8 [A]."""
    return spaces.Box(0, 1, (ACTIONS,), np.int8)


def action_space() -> Any:
    """0-3 hand slot, 4-8 row, 9 pass."""
    return spaces.Discrete(ACTIONS)
