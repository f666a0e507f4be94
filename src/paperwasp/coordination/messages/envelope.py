"""Messages as bytes: an envelope with the version of the format, the time that is left, and the message.

    [version, milliseconds that are left or nil, {"kind": …}]

The version is read before all else, and only one is known: whoever changes what messages say changes it. Bytes are not
trusted: whatever they are, they are a message or an UnreadableMessage.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from time import monotonic_ns
from typing import Any, Final

import msgspec

from paperwasp.coordination.messages.failures import Refused, error_of, refused
from paperwasp.coordination.messages.message import Conversion, Message, Sent
from paperwasp.coordination.messages.values import read_extension
from paperwasp.errors import InvalidInput, PaperwaspError, UnreadableMessage
from paperwasp.limits import messages as limits

VERSION: Final = 1
_LONGEST_MS: Final = 1e12


class _Version(msgspec.Struct, frozen=True, array_like=True):
    """An envelope of any version, as far as they are all alike."""

    version: int


class Codec:
    """Values to bytes and back, of the classes that conversions know."""

    def __init__(self, conversions: Iterable[Conversion]) -> None:
        conversions = tuple(conversions)
        self._of_value: Final = {each.value: each for each in conversions}
        self._of_message: Final = {each.message: each for each in conversions}
        union: Any = reduce(or_, self._of_message, Refused)
        envelope: Any = tuple[int, float | None, union]
        self._encoder: Final = msgspec.msgpack.Encoder()
        self._version: Final = msgspec.msgpack.Decoder(_Version, ext_hook=lambda code, data: None)
        self._decoder: Final = msgspec.msgpack.Decoder(envelope, ext_hook=read_extension)

    def carries(self, value: object) -> bool:
        """Return whether a value can cross to another process."""
        return isinstance(value, Exception) or type(value) in self._of_value

    def encode(self, value: object) -> bytes:
        """The bytes of a value. Errors: InvalidInput for one that cannot cross, or is too large."""
        try:
            sent = self._sent(value)
            left_ms = None if not sent.deadline_ns else (sent.deadline_ns - monotonic_ns()) / 1e6
            data = self._encoder.encode((VERSION, left_ms, sent.message))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InvalidInput(f"{type(value).__name__} cannot go to another process: {error}") from error
        if len(data) > limits.MESSAGE_BYTES:
            raise InvalidInput(f"a message of {len(data)} bytes; at most {limits.MESSAGE_BYTES}")
        return data

    def _sent(self, value: object) -> Sent:
        if isinstance(value, Exception):
            return Sent(refused(value))
        conversion = self._of_value.get(type(value))
        if conversion is None:
            raise TypeError("it is of this process alone")
        return conversion.to_message(value)

    def decode(self, data: bytes, request: object = None) -> Any:
        """The value that bytes say; `request`: what it is the answer to. An error is given, not raised.

        Errors: UnreadableMessage.
        """
        if len(data) > limits.MESSAGE_BYTES:
            raise UnreadableMessage(f"a message of {len(data)} bytes; at most {limits.MESSAGE_BYTES}")
        try:
            self._check_version(data)
            _, left_ms, message = self._decoder.decode(data)
            return self._value(message, left_ms, request)
        except UnreadableMessage:
            raise
        except (PaperwaspError, msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError) as error:
            raise UnreadableMessage(f"bytes that are no message: {error}") from None
        except Exception as error:  # what nobody has foreseen that bytes may say
            raise UnreadableMessage(f"bytes that are no message: {type(error).__name__}: {error}") from error

    def _check_version(self, data: bytes) -> None:
        version = self._version.decode(data).version
        if version != VERSION:
            raise UnreadableMessage(
                f"a message of version {version}, where this process knows {VERSION}: have all processes of the service"
                " run the same version of paperwasp"
            )

    def _value(self, message: Message, left_ms: float | None, request: object) -> Any:
        if isinstance(message, Refused):
            return error_of(message)
        deadline_ns = 0
        if left_ms is not None:
            if not -_LONGEST_MS < left_ms < _LONGEST_MS:
                raise UnreadableMessage(f"a message has {left_ms:g} ms left")
            deadline_ns = max(1, monotonic_ns() + int(left_ms * 1e6))
        return self._of_message[type(message)].from_message(message, deadline_ns, request)
