"""The kinds of texts and attributes of services.xml: a name for each, and the values that fit it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass

_LONGEST_NUMBER: Final = 24
_LONGEST_NAME_BYTES: Final = 200
"""Content clusters have folders of their name, and file systems take at most 255 bytes."""
_NAME: Final = compile_later(r"[^\W\d][\w.-]*")
_SIZE: Final = compile_later(r"([0-9]{1,12})\s*(?:([kKmMgGtT])(i?)[bB]?|[bB])?")
_SIZE_POWERS: Final = "kmgt"
_SECONDS: Final = compile_later(r"([0-9]{1,9}(?:\.[0-9]{0,9})?)\s*(ms|s)?")


@dataclass(frozen=True, slots=True)
class Value:
    """A kind of value: in words for an error, and whether a text is one."""

    description: str
    accepts: Callable[[str], bool]


def value_named(name: str) -> Value:
    """The kind of that name; `a|b` is one of the words a and b."""
    return VALUES[name] if name in VALUES else _choice(name.split("|"))


def integer(text: str) -> int | None:
    """The integer that the text is; None: it is none, or longer than any that makes sense."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else None


def number(text: str) -> float | None:
    """The finite decimal number that the text is."""
    fits = len(text) <= _LONGEST_NUMBER and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?", text)
    return float(text) if fits else None


def boolean(text: str) -> bool:
    """A text that fits `boolean` as what it means."""
    return text in ("true", "1")


def size_bytes(text: str) -> int | None:
    """`10MiB`, `10 MB`, `512`: a number of bytes. Units with an `i` are powers of 1024, others of 1000."""
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    amount, unit, binary = found.groups()
    power = _SIZE_POWERS.index(unit.lower()) + 1 if unit else 0
    return int(amount) * int((1024 if binary else 1000) ** power)


_LEAST_QUERY_MEMORY: Final = 1 << 20
QUERY_MEMORY: Final = (
    f"a size like 256MiB, from {_LEAST_QUERY_MEMORY >> 20} MiB to {limits.MOST_QUERY_MEMORY_BYTES >> 30} GiB"
)
"""What a query may be given of memory."""


def is_query_memory(size: int) -> bool:
    """Whether a query may be given memory of this size, in bytes."""
    return _LEAST_QUERY_MEMORY <= size <= limits.MOST_QUERY_MEMORY_BYTES


def _integers(lowest: int, highest: int = 2**31 - 1) -> Value:
    def accepts(text: str) -> bool:
        found = integer(text)
        return found is not None and lowest <= found <= highest

    return Value(f"an integer from {lowest} to {highest}", accepts)


def _numbers(lowest: float, highest: float | None = None) -> Value:
    def accepts(text: str) -> bool:
        found = number(text)
        return found is not None and lowest <= found and (highest is None or found <= highest)

    return Value(f"a number from {lowest:g}" + ("" if highest is None else f" to {highest:g}"), accepts)


def _matching(description: str, pattern: str) -> Value:
    compiled = compile_later(pattern)
    return Value(description, lambda text: compiled.fullmatch(text) is not None)


def _is_name(text: str) -> bool:
    return len(text.encode()) <= _LONGEST_NAME_BYTES and _NAME.fullmatch(text) is not None


def _choice(words: list[str]) -> Value:
    listed = " or ".join(f"'{word}'" for word in words)
    return Value(listed, words.__contains__)


VALUES: Final = {
    "text": Value("a text", lambda _: True),
    "name": Value(f"a name of at most {_LONGEST_NAME_BYTES} bytes", _is_name),
    "id": _matching("an id", r"[^\s<>&\"']{1,400}"),
    "boolean": Value("'true' or 'false'", ("true", "false", "1", "0").__contains__),
    "count": _integers(0),
    "positive": _integers(1),
    "integer": _integers(-(2**31)),
    "long": _integers(-(2**62), 2**62),
    "port": _integers(0, 65_535),
    "copies": _integers(1, 65_534),
    "distribution-key": _integers(0, 65_534),
    "merge-nodes": _integers(2, 16),
    "number": _numbers(float("-1e18")),
    "from-0": _numbers(0),
    "from-1": _numbers(1),
    "from-60": _numbers(60),
    "ratio": _numbers(0, 1),
    "minimum-file-size": _numbers(0.1, 1),
    "half-percent": _numbers(0, 50),
    "amount": _matching("a positive integer or a range like [2, 4]", r"\s*([1-9][0-9]{0,8}|\[[\s0-9]*,[\s0-9]*\])\s*"),
    "size": _matching("a size like 10MiB", _SIZE.pattern),
    "rate": _matching("a number that may have a unit of k, m or g", r"[0-9]{1,12}(\.[0-9]{0,12})?\s*[kmgKMG]?"),
    "seconds": _matching("a time like 2.0 or 500ms", _SECONDS.pattern),
    "duration": _matching("a time like 1.5 h", r"[0-9.]{1,12}\s*[a-z]{0,12}"),
    "time-of-day": _matching("a time of day like 02:00", r"[0-9]{2}:[0-9]{2}"),
    "partitions": _matching("like '*' or '1|*'", r"([1-9][0-9]{0,4}\|){0,1000}\*"),
    "1.0": _choice(["1.0"]),
}
"""Name → kind of value, as the tables of the grammar name them."""
