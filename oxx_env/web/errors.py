"""The one exception by which a request is refused."""

from __future__ import annotations

from typing import Any


class RequestError(Exception):
    """A request that is refused.

    status   HTTP status
    message  a sentence for people
    retry_s  seconds after which the same request may succeed; 0: unknown
    more     further keys of the answer
    """

    def __init__(
        self, status: int, message: str, retry_s: int = 0, more: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_s, self.more = status, message, retry_s, more or {}
