"""Universal Binary JSON: what xgboost saves its models in. Big-endian, and every value begins with a marker.

Arrays that say the type of their elements become arrays of NumPy, all else what JSON would be. The content is not
trusted: no count is believed beyond the bytes that are there, and depth and number of values are bounded.

Format: https://ubjson.org/type-reference/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core.clock import check_time

_NUMBERS: Final[Mapping[str, np.dtype[Any]]] = {
    "i": np.dtype(">i1"),
    "U": np.dtype(">u1"),
    "I": np.dtype(">i2"),
    "l": np.dtype(">i4"),
    "L": np.dtype(">i8"),
    "d": np.dtype(">f4"),
    "D": np.dtype(">f8"),
}
_BETWEEN_LOOKS: Final = 1024
"""Values between two looks at the clock."""
_LENGTHS: Final = frozenset("iUIlL")
_CONSTANTS: Final = {"Z": None, "T": True, "F": False}


def read_ubjson(content: bytes) -> Any:
    """The value that the content is. Errors: ValueError that says where in it."""
    reader = _Reader(content)
    value = reader.value(reader.marker(), 0)
    if reader.at != len(content):
        raise ValueError(f"byte {reader.at}: something follows the value")
    return value


class _Reader:
    def __init__(self, content: bytes) -> None:
        self.at = 0
        self._content = content
        self._values = 0

    def value(self, marker: str, depth: int) -> Any:
        """Reads the value that follows a marker. Errors: ValueError if it is unknown, or there is too much."""
        self._values += 1
        if self._values % _BETWEEN_LOOKS == 0:
            check_time()
        if self._values > limits.UBJSON_VALUES:
            raise ValueError(f"it has more than {limits.UBJSON_VALUES} values")
        if depth > limits.UBJSON_DEPTH:
            raise ValueError(f"byte {self.at}: it is nested deeper than {limits.UBJSON_DEPTH} levels")
        if marker in _NUMBERS:
            return self._numbers(_NUMBERS[marker], 1)[0].item()
        if marker == "S":
            return self._text()
        if marker == "{":
            return self._object(depth)
        if marker == "[":
            return self._array(depth)
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        raise ValueError(f"byte {self.at - 1}: {marker!r} begins no value")

    def marker(self) -> str:
        """The next one; no-ops are passed over."""
        while (found := self._take(1)) == b"N":
            pass
        return found.decode("latin-1")

    def _take(self, size_bytes: int) -> bytes:
        end = self.at + size_bytes
        if end > len(self._content):
            raise ValueError(f"byte {len(self._content)}: it is cut off")
        self.at, start = end, self.at
        return self._content[start:end]

    def _numbers(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        found = np.frombuffer(self._take(count * dtype.itemsize), dtype)
        return found.astype(dtype.newbyteorder("="))

    def _length(self) -> int:
        start = self.at
        marker = self.marker()
        if marker not in _LENGTHS:
            raise ValueError(f"byte {start}: {marker!r} begins no length")
        length: int = self._numbers(_NUMBERS[marker], 1)[0].item()
        if not 0 <= length <= len(self._content) - self.at:
            raise ValueError(f"byte {start}: {length} is no length that the rest could have")
        return length

    def _text(self) -> str:
        start = self.at
        try:
            return self._take(self._length()).decode()
        except UnicodeDecodeError:
            raise ValueError(f"byte {start}: a text is not UTF-8") from None

    def _head(self, end: str) -> tuple[str, int | None]:
        """The type of all elements and their number, where they stand before them; consumes an empty container."""
        type_, count = "", None
        if self._next() == "$":
            self._take(1)
            type_ = self.marker()
        if self._next() == "#":
            self._take(1)
            count = self._length()
        elif type_:
            raise ValueError(f"byte {self.at}: the number of elements of one type is not said")
        elif self._next() == end:
            self._take(1)
            count = 0
        return type_, count

    def _next(self) -> str:
        return self._content[self.at : self.at + 1].decode("latin-1")

    def _array(self, depth: int) -> Any:
        type_, count = self._head("]")
        if type_ in _NUMBERS:
            return self._numbers(_NUMBERS[type_], count or 0)
        if type_ in _CONSTANTS:
            raise ValueError(f"byte {self.at}: an array of {type_!r} has no bytes to count")
        found = list[Any]()
        while count is None or len(found) < count:
            marker = type_ or self.marker()
            if count is None and marker == "]":
                break
            found.append(self.value(marker, depth + 1))
        return found

    def _object(self, depth: int) -> dict[str, Any]:
        type_, count = self._head("}")
        found: dict[str, Any] = {}
        read = 0
        while count is None or read < count:
            if count is None and self._next() == "}":
                self._take(1)
                break
            key = self._text()
            found[key] = self.value(type_ or self.marker(), depth + 1)
            read += 1
        return found
