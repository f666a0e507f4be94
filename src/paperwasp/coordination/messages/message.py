"""Messages, and the codec that makes one of a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec


class Message(msgspec.Struct, frozen=True, tag=True, tag_field="kind", omit_defaults=True, forbid_unknown_fields=True):
    """A request or an answer that can cross to another process, or a part of one. Immutable.

    As bytes it is a map: its class by the name `kind`, then the fields that are not as they are by default.
    """


class Sent(NamedTuple):
    """A message, and how long it is of use."""

    message: Message
    deadline_ns: int = 0
    """On the monotonic clock of this process; 0: none. It crosses as the time that is left."""


class Conversion(NamedTuple):
    """How the values of one class cross."""

    value: type
    message: type[Message]
    to_message: Callable[[Any], Sent]
    """Makes the message. Errors: InvalidInput for a value that cannot cross."""
    from_message: Callable[[Any, int, Any], Any]
    """(message, deadline on the monotonic clock or 0, the request that an answer is to) → the value.

    Errors: UnreadableMessage."""
