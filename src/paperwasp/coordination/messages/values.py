"""Values of any type within messages: what JSON has, bytes, large integers, positions and tensors.

MessagePack has no form for some of them: these are extensions, each with a number.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np

from paperwasp.document.converters import GeoPosition
from paperwasp.document.tensor.binary_format import read_tensor, write_tensor
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import UnreadableMessage
from paperwasp.limits import messages as limits

INTEGER: Final = 1
"""An integer beyond 64 bits: its digits."""
TEXT: Final = 2
"""A text with half of a surrogate pair: UTF-8 with that in it."""
POSITION: Final = 3
"""A geographical position: longitude and latitude in millionths of degrees, as MessagePack."""
TENSOR: Final = 4
"""A tensor in the typed binary format."""
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
_position: Final = msgspec.msgpack.Decoder(tuple[int, int])


def plain(value: Any) -> Any:
    """The value as MessagePack has it. Errors: TypeError for an object that is no value; ValueError for an integer of
    too many digits."""
    kind = type(value)
    if value is None or kind in (bool, float, bytes):
        return value
    if kind is str:
        return value if value.isascii() or _is_utf8(value) else _extension(TEXT, value.encode("utf-8", "surrogatepass"))
    if kind is int:
        return value if _LEAST <= value <= _MOST else _extension(INTEGER, _digits_of(value))
    if kind is Tensor:
        return _extension(TENSOR, write_tensor(value))
    if kind is GeoPosition:
        return _extension(POSITION, msgspec.msgpack.encode(tuple(value)))
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, tuple | list | frozenset | set):
        return [plain(each) for each in value]
    if hasattr(value, "items"):
        return {plain(key): plain(each) for key, each in value.items()}
    raise TypeError(f"{kind.__name__} is no value of a message")


def read_extension(code: int, data: memoryview) -> Any:
    """The value of an extension. Errors: UnreadableMessage."""
    content = bytes(data)
    try:
        if code == INTEGER:
            if len(content) > limits.INTEGER_DIGITS:
                raise UnreadableMessage(f"an integer of {len(content)} digits; at most {limits.INTEGER_DIGITS}")
            return int(content)
        if code == TEXT:
            return content.decode("utf-8", "surrogatepass")
        if code == POSITION:
            return GeoPosition(*_position.decode(content))
        if code == TENSOR:
            return read_tensor(content)
    except (ValueError, msgspec.MsgspecError) as error:
        raise UnreadableMessage(f"a value of a message is damaged: {error}") from None
    raise UnreadableMessage(f"a message has a value of an unknown kind {code}")


def _digits_of(value: int) -> bytes:
    """Errors: ValueError."""
    digits = str(value).encode()
    if len(digits) > limits.INTEGER_DIGITS:
        raise ValueError(f"an integer of {len(digits)} digits; at most {limits.INTEGER_DIGITS}")
    return digits


def _extension(code: int, data: bytes) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, data)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
