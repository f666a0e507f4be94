"""The rank features of Vespa that are checked only: their arguments, outputs and types, in one table.

A profile that asks for one of them is right, and is not executed yet. What is executed registers itself, each family in
its own file; both are in `family.families`.
Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html
"""

from __future__ import annotations

from typing import Final

from paperwasp.errors import LanguageError
from paperwasp.features.family import (
    Check,
    Family,
    Parameter,
    RankSetup,
    TypeRule,
    register_known,
)
from paperwasp.parsing.nearest import did_you_mean
from paperwasp.tensor.types import NUMBER, TensorType


def _number(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    return NUMBER


def _nothing_more(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    return ""


def _one_of(what: str, word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        raise LanguageError(f"{what} is {' or '.join(words)}, not {word!r}{did_you_mean(word, words)}")


# Types


# Checks beyond the kinds of arguments


def _row(
    name: str,
    *parameters: Parameter,
    outputs: str = "out",
    optional: int = 0,
    repeated: bool = False,
    type_: TypeRule = _number,
    check: Check = _nothing_more,
    any_output: bool = False,
) -> Family:
    """`outputs`: names, with spaces between them; the first is the one of the name alone."""
    return Family(
        name,
        parameters,
        tuple(outputs.split()),
        None,
        optional,
        repeated,
        type=type_,
        pending=_named(name, check),
        any_output=any_output,
    )


def _named(name: str, check: Check) -> Check:
    def pending(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
        return check(setup, arguments, output) or f"rank feature {name}"

    return pending


_UNDOCUMENTED: Final = (
    "debugAttributeWait",
    "debugWait",
)

KNOWN: Final = (
    # Text
    # Beyond the reference: what content nodes know
    *(_row(name, "name", repeated=True, any_output=True) for name in _UNDOCUMENTED),
)

register_known(*KNOWN)
