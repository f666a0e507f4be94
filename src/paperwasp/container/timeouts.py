"""Timeouts in requests: a number with an optional unit.

Vespa: ParameterParser.java
"""

from __future__ import annotations

from typing import Final

from paperwasp.base.patterns import compile_later

MAX_TIMEOUT_MS: Final = 1e9
_UNITS_MS: Final = {"": 1000.0, "ks": 1e6, "s": 1000.0, "ms": 1.0, "µs": 0.001, "μs": 0.001}
_NUMBER: Final = compile_later(r"[0-9.]*")


def timeout_ms(text: str) -> float:
    """Return a timeout in milliseconds. Errors: ValueError that says what is wanted."""
    value = duration_ms(text)
    if value > MAX_TIMEOUT_MS:
        raise ValueError(f"must be from 0 to {MAX_TIMEOUT_MS:.0f} ms")
    return value


def duration_ms(text: str) -> float:
    """Return milliseconds of a number and a unit: ks, s (when there is none, or an unknown one), ms, µs.

    Errors: ValueError.
    """
    text = text.strip()
    end = len(_NUMBER.match(text)[0])  # type: ignore[index]
    try:
        return float(text[:end]) * _UNITS_MS.get(text[end:].strip(), 1000.0)
    except ValueError:
        raise ValueError("must be a number") from None
