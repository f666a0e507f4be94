"""The order of strings: by their bytes, without case, or as people of some language expect it.

The latter is the Unicode Collation Algorithm with the rules of a locale, by ICU, as Vespa uses it. A string's key is
bytes that compare as the strings do.

Vespa: https://docs.vespa.ai/en/reference/querying/sorting-language.html#sort-function
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final

from msgspec import Struct

from paperwasp.base.patterns import compile_later
from paperwasp.errors import InvalidQuery

SORT_FUNCTIONS: Final = ("raw", "lowercase", "uca")
STRENGTHS: Final = ("primary", "secondary", "tertiary", "quaternary", "identical")
DEFAULT_LOCALE: Final = "en_US"
LOCALE: Final = compile_later(r"[A-Za-z0-9@=;._-]{0,64}")
_COLLATORS: Final = 64
"""Kept at a time: a locale is what a query says."""


class Collation(Struct, frozen=True):
    """One order. `locale` (en_US) and `strength` (which differences count) are those of uca.

    Errors: InvalidQuery for unknown functions, strengths, and what is no locale. One that ICU has no rules for is
    ordered by the rules for all.
    """

    function: str = "lowercase"
    locale: str = ""
    strength: str = "primary"

    def __post_init__(self) -> None:
        if self.function not in SORT_FUNCTIONS:
            raise InvalidQuery(f"Unknown sort function '{self.function}': known are {', '.join(SORT_FUNCTIONS)}")
        if self.function != "uca":
            return
        if self.strength not in STRENGTHS:
            raise InvalidQuery(f"Unknown collation strength: '{self.strength}'. Known are {', '.join(STRENGTHS)}")
        if LOCALE.fullmatch(self.locale) is None:
            raise InvalidQuery(f"'{self.locale[:64]}' is no locale to sort by: expected one as en_US")

    @property
    def key_of(self) -> Callable[[str], bytes]:
        """Gives the key of a string. Errors: InvalidQuery for a locale that ICU cannot read."""
        if self.function == "uca":
            return _uca(self.locale.replace("-", "_") or DEFAULT_LOCALE, self.strength)
        return _lowercase if self.function == "lowercase" else _raw


LOWERCASE: Final = Collation()


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _lowercase(text: str) -> bytes:
    return text.lower().encode("utf-8", "surrogatepass")


@lru_cache(_COLLATORS)
def _uca(locale: str, strength: str) -> Callable[[str], bytes]:
    icu = _icu()
    try:
        collator = icu.Collator.createInstance(icu.Locale(locale))
    except icu.ICUError as error:
        raise InvalidQuery(f"'{locale}' is no locale to sort by: {error.args[-1] if error.args else error}") from None
    collator.setStrength(getattr(icu.Collator, strength.upper()))
    key_of: Callable[[str], bytes] = collator.getSortKey
    return key_of


@cache
def _icu() -> Any:
    """Imported when a query first sorts by it: its tables take 30 MB."""
    import icu

    return icu
