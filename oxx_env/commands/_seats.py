"""Bots named on the command line: at the seats of a table, or to advise a person."""

from __future__ import annotations

from oxx_env import bots
from oxx_env.commands import UserError


def at_seats(text: str, seats: int) -> list[bots.Bot]:
    """The bots of --bots, separated by commas, one for each seat; the last fills the table.

    Raises UserError for more bots than seats and for one that sees hidden cards, ValueError for a
    specification that names no bot.
    """
    specs = [spec.strip() for spec in text.split(",")]
    if len(specs) > seats:
        raise UserError(f"--bots names {len(specs)} bots for {seats} seats")
    specs += specs[-1:] * (seats - len(specs))
    return [fair(f"--bots {spec}", spec) for spec in specs]


def fair(option: str, spec: str) -> bots.Bot:
    """The bot of an option, to play with people and advise them. Raises UserError for one that
    sees hidden cards."""
    bot = bots.make(spec, own_code=True)  # it was typed
    if bot.needs_state:
        raise UserError(f"{option}: sees hidden cards, and plays in the arena only")
    return bot
