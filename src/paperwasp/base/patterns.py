"""Regular expressions that are compiled when they are first used.

There are some three hundred in the service. To compile them all takes a tenth of the time in which it starts, and few
requests need more than twenty.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, Final, cast

_ATTRIBUTES: Final = (
    *("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"),
    *("pattern", "flags", "groups", "groupindex"),
)


def compile_later(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, but an error in the expression is raised where it is first used."""
    return cast("re.Pattern[AnyStr]", _Later(text, flags))


class _Compiled:
    """Has all of a compiled expression as attributes of its own."""


class _Later(_Compiled):
    """An expression that is not compiled yet. It becomes a `_Compiled`, whose attributes are found sooner."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:
        text, flags = self._given
        compiled = re.compile(text, flags)
        self.__dict__.update({each: getattr(compiled, each) for each in _ATTRIBUTES})
        self.__class__ = _Compiled  # type: ignore[assignment]
        return getattr(self, name)
