"""How a game is written down: positions, records, a real game as it is followed, events in words.

    position  a position as text and as JSON; what is re-exported here. Its parts: `position_text`,
              `position_facts` (checked), `position_game` (built)
    records   finished games, `oxx-game/1`: write, check, replay
    tracker   a game at a real table, entered round by round
    wording   the rules, placements and choices in sentences: the only place that words them
"""

from oxx_env.notation.position import (
    PositionError,
    check_position,
    from_text,
    read_position,
    to_text,
    view_from_dict,
)

__all__ = [
    "PositionError",
    "check_position",
    "from_text",
    "read_position",
    "to_text",
    "view_from_dict",
]
