"""What a page is sent: the table as one seat sees it, its events, and a record for the replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oxx_env.game.rules import CARD_PHASE, NO_CARD, deck_cards
from oxx_env.game.scoring import direction, ranks
from oxx_env.notation import records, wording

if TYPE_CHECKING:
    from oxx_env.web.room import Room

WATCHER = -1  # the seat whose view shows public cards only


def table_state(room: Room, seat: int | None, since: int | None) -> dict[str, Any]:
    """The table as a seat (None: a watcher) sees it; its events from number `since` on, or (None)
    those of the running game, with the deck.

    The only cards in it are those of the seat's view and of the public events.
    """
    table, view, events = room.table, room.view(WATCHER if seat is None else seat), room.events()
    game, players, over, deciders = view.game, view.players, table.over, room.deciders
    if since is not None and 0 <= since <= len(events):
        start = since
    else:
        start = max(i for i, event in enumerate(events) if event["kind"] == "deal")
    picked = NO_CARD if seat is None else int(game["picks"][seat])
    state: dict[str, Any] = {
        "id": room.id,
        "version": room.version,
        "seat": seat,
        "turn": 0 if seat is None else room.turn(seat),
        "rules": room.setup.rules,
        "direction": direction(room.setup.rules),
        "deck": room.setup.deck_name,
        "coach": room.setup.coach,
        "seats": [_seat_state(room, index, seat) for index in range(players)],
        "watch": room.watch,
        "trouble": room.trouble,
        "phase": view.phase,
        "waits_for": deciders,
        "hand": [] if seat is None else view.hand,
        "picked": picked if picked != NO_CARD else None,
        "legal": view.legal if seat in deciders else [],
        "card": view.card,
        "hand_sizes": game["hand_sizes"][:players].tolist(),
        "pile_sizes": game["pile_sizes"][:players].tolist(),
        "known_hand": view.known_hand,
        "returned": view.returned,
        "scores": view.scores,
        "round": int(game["round"]) + (view.phase != "over"),
        "match": {
            "game": int(game["match_game"]),
            "of": int(game["match_games"]),
            "points": table.scores(),
        },
        "over": over,
        "events_from": start,
        "events": events[start:],
    }
    state["invite"] = next((s["invite"] for s in state["seats"] if "invite" in s), None)
    if since is None:
        state["cards"] = room.setup.deck
    if over:
        state["ranks"], state["winners"] = table.ranks(), table.winners()
    return state


def _seat_state(room: Room, index: int, viewer: int | None) -> dict[str, Any]:
    seat = room.seats[index]
    state: dict[str, Any] = {
        "name": seat.name,
        "kind": seat.kind,
        "level": seat.level,
        "free": seat.free,
        "away": room.is_away(index),
    }
    if viewer is not None:
        state["may_change"] = room.may_change(viewer, index)
        if seat.free and room.is_host(viewer):
            state["invite"] = room.invitation(index)
    return state


def event(
    kind: str, rest: list[Any], names: Sequence[str], rules: str, deck: Any
) -> dict[str, Any]:
    """An event of `records.events_of` as JSON; a placement with a sentence for people."""
    if kind == "deal":
        return {"kind": kind, "game": rest[0], "rows": rest[1]}
    if kind == "reveal":
        return {"kind": kind, "round": rest[0], "cards": rest[1]}
    if kind == "place":
        seat, number, row, taken = rest[0]
        text = wording.placement(rest[0], names[seat], rules, deck)
        return {
            "kind": kind, "seat": seat, "number": number, "row": row, "taken": taken, "text": text
        }  # fmt: skip
    record, match = rest[0], rest[0]["match"]
    return {
        "kind": kind,
        **{key: match[key] for key in ("game", "of", "points_before")},
        **{key: record[key] for key in ("scores", "winners")},
    }


def replay_game(record: dict[str, Any], number: int = 1) -> dict[str, Any]:
    """A record for the replay page: its events, and each seat's hand before each round.

    `number` is that of the game in its file. Raises RecordError for a record that breaks the rules.
    """
    checked = records.replay(record, number)
    replay, rules, players = checked.replay(), checked.rules, checked.players
    deck, names = deck_cards(checked.decks[0]), [f"seat {seat}" for seat in range(players)]
    events: list[dict[str, Any]] = []
    hands: list[dict[str, Any]] = []
    for kind, *rest in replay.steps(checked.decisions):
        events.append(event(kind, [record] if kind == "end" else rest, names, rules, deck))
        if replay.game["phase"] == CARD_PHASE:
            hands.append(
                {
                    "hands": [replay.hand(seat) for seat in range(players)],
                    "pile_sizes": replay.game["pile_sizes"][:players].tolist(),
                }
            )
    return {
        **checked.summary(),
        "direction": direction(rules),
        "ranks": ranks(checked.scores, rules),
        "cards": deck,
        "names": names,
        "events": events,
        "hands": hands,
    }
