"""The bytes of request bodies that are held, of all ports together.

Everything here runs on the event loop.
"""

from __future__ import annotations

from typing import Final

from paperwasp import limits
from paperwasp.errors import Overload, SlowRequest


class BodyBudget:
    """The bytes of bodies that are held from their first byte until they are answered, of all ports together."""

    def __init__(self, limit_bytes: int = limits.HTTP_BODIES_BYTES) -> None:
        self.held_bytes = 0
        self._limit_bytes = limit_bytes

    def check(self, size_bytes: int, own_bytes: int) -> None:
        """Whether there is room for so much more of a body of which `own_bytes` are held. One that is alone may be
        as large as its own limit lets it be. Errors: Overload."""
        others_bytes = self.held_bytes - own_bytes
        if others_bytes > 0 and self.held_bytes + size_bytes > self._limit_bytes:
            raise Overload(
                f"The bodies of requests under way have {self.held_bytes} bytes together; at most {self._limit_bytes} "
                "(HTTP_BODIES_BYTES in paperwasp.limits): try again later, or send less at a time"
            )


BODIES: Final = BodyBudget()
"""The budget of this process."""


def is_too_slow(size_bytes: int, seconds: float) -> bool:
    """Whether so much of a body has come too slowly."""
    return seconds > limits.HTTP_BODY_SECONDS + size_bytes / limits.HTTP_BODY_BYTES_A_SECOND


def too_slow(size_bytes: int, seconds: float) -> SlowRequest:
    """The refusal of such a body."""
    return SlowRequest(
        f"{size_bytes} bytes of the body came in {seconds:.0f} seconds, which is too slow "
        "(HTTP_BODY_SECONDS and HTTP_BODY_BYTES_A_SECOND in paperwasp.limits)"
    )
