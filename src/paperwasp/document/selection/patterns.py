"""Patterns of strings: regular expressions (`=~`) and globs (`=`).

RE2 runs both, as in Vespa: time is linear in the text whatever the pattern, and memory is bounded. So a pattern from a
request cannot stop a node, which a backtracking engine like Python's would allow. In turn RE2 has no look-around and no
back references, and counts at most 1000 in a repetition: what it refuses is refused when the selection is parsed.

Compiled patterns are kept here, and only a limited number of them: matchers, which others keep, know their texts alone.

Differs: `*` and `?` of a glob match a newline too, as Vespa's page says; its implementation takes only those at either
end for that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import re2

from paperwasp import limits
from paperwasp.base.patterns import compile_later

Test = Callable[[str], bool]
"""Whether a text matches."""

_WILDCARDS: Final = compile_later(r"(\*+|\?)")


class PatternError(ValueError):
    """A text is no regular expression, or is one that is too large."""


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # what groups capture is never used, and thousands of them cost 0.4 ms a byte
    options.max_mem = limits.SELECTION_PATTERN_BYTES
    return options


_OPTIONS: Final = _options()


@lru_cache(limits.SELECTION_PATTERNS_KEPT)
def regular_expression(pattern: str) -> Test:
    """Whether the pattern is found anywhere in a text. Raises PatternError."""
    if not pattern:
        return lambda text: True
    try:
        search = re2.compile(pattern.encode("utf-8", "surrogatepass"), _OPTIONS).search
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        raise PatternError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
    return lambda text: search(text.encode("utf-8", "surrogatepass")) is not None


@lru_cache(limits.SELECTION_PATTERNS_KEPT)
def glob(pattern: str) -> Test:
    """Whether a text is the pattern: `*` stands for any characters, `?` for one."""
    parts = _WILDCARDS.split(pattern)
    kinds = "".join("*" if part.startswith("*") else "?" if part == "?" else "t" for part in parts if part)
    text = "".join(parts[::2])
    match kinds:
        case "" | "t":
            return pattern.__eq__
        case "*":
            return lambda value: True
        case "t*":
            return lambda value: value.startswith(text)
        case "*t":
            return lambda value: value.endswith(text)
        case "*t*":
            return lambda value: text in value
    try:
        return regular_expression("(?s)^" + "".join(map(_expression, parts)) + "$")
    except PatternError:
        return lambda value: False


def _expression(part: str) -> str:
    return ".*" if part.startswith("*") else "." if part == "?" else str(re2.escape(part))
