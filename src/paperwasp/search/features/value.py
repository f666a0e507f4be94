"""value(x): its own argument, a number.

Vespa: a feature of its tests and of other features; harmless in a profile.
"""

from __future__ import annotations

from paperwasp.errors import LanguageError
from paperwasp.search.features.family import Compute, RankSetup, constant, register


@register("value", "name", outputs=("0",))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    try:
        return constant(float(arguments[0]))
    except ValueError:
        raise LanguageError(f"value takes a number, not {arguments[0]!r}") from None
