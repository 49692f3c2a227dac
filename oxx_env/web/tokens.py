"""What follows from a table's secret (deals, tokens, links), and hashes of tokens."""

from __future__ import annotations

import hashlib
import hmac
from typing import NamedTuple

from oxx_env.game.cards import NUMBERS
from oxx_env.game.rules import CARDS_DEALT, ROWS

SECRET_BYTES = 32  # of a table: 256 bits


class RequestKey(NamedTuple):
    """Identifies a request that changes something, so that it counts once when it is sent twice.

    secret   the random key that the client chose; like a token, it proves who sends the request
    request  hash of the request
    """

    secret: str
    request: str

    @property
    def name(self) -> str:
        """The part of the key's hash that the table's file keeps."""
        return hash_of(self.secret)[:16]


def derive(secret: bytes, label: str) -> bytes:
    """32 bytes that look random to all who do not know the secret (HMAC-SHA256)."""
    return hmac.digest(secret, label.encode(), "sha256")


def hash_of(token: str) -> str:
    """The hash by which a token is recognised; the token does not follow from it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def secret_deal(secret: bytes, players: int, game: int) -> tuple[list[list[int]], list[int]]:
    """Draw piles and rows of a match's game (from 1).

    Cards are sorted by keyed hashes of 256 bits, so the visible cards of one game tell nothing
    about its hidden cards or about another game.
    """
    order = sorted(range(1, NUMBERS + 1), key=lambda n: derive(secret, f"deal {game} {n}"))
    each = int(CARDS_DEALT[players])
    piles = [order[seat * each : (seat + 1) * each] for seat in range(players)]
    return piles, order[players * each :][:ROWS]
