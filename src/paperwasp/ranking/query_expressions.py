"""Ranking expressions that come with a query, and take the place of those of its rank profile.

    RankExpressions + RankProfile → RankProfile: all else is as the profile declares it

Their places are counted within the texts of the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.errors import LanguageError, Position, TooLarge
from paperwasp.limits import expressions as limits
from paperwasp.ranking.expression import parse_expression
from paperwasp.schema.model import GlobalPhase, RankProfile
from paperwasp.schema.rank_settings import find_features
from paperwasp.text.parsing.tokens import position_of


class RankExpressions(NamedTuple):
    """The texts that a query gives. None: as the rank profile says. A key of what is made of them."""

    first_phase: str | None = None
    second_phase: str | None = None
    global_phase: str | None = None
    match_features: str | None = None
    """Rank features and functions, separated by white space."""

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of expressions that are given: `first-phase`, `match-features`, …"""
        return frozenset(_KINDS[field] for field, text in zip(self._fields, self, strict=True) if text is not None)


FIRST_PHASE: Final = "ranking.firstPhase.expression"
SECOND_PHASE: Final = "ranking.secondPhase.expression"
GLOBAL_PHASE: Final = "ranking.globalPhase.expression"
MATCH_FEATURES: Final = "ranking.matchFeatures.expression"
PARAMETERS: Final[Mapping[str, str]] = {
    "first_phase": FIRST_PHASE,
    "second_phase": SECOND_PHASE,
    "global_phase": GLOBAL_PHASE,
    "match_features": MATCH_FEATURES,
}
"""Field of RankExpressions → the parameter of a search."""
_KINDS: Final[Mapping[str, str]] = {field: field.replace("_", "-") for field in PARAMETERS}
"""Field of RankExpressions → the name of what it takes the place of."""


_WAITING: Final = compile_later(r"\bdebug(?:Attribute)?Wait\b")


def check_text(field: str, text: str) -> None:
    """Reads the text of a field of RankExpressions. Errors: LanguageError with the parameter, line and column."""
    name = PARAMETERS[field]
    if len(text) > limits.TEXT_CHARACTERS:
        raise LanguageError(f"{name} has {len(text)} characters; it may have {limits.TEXT_CHARACTERS}")
    if waiting := _WAITING.search(text):
        place = position_of(text, waiting.start(), name)
        raise LanguageError(f"'{waiting[0]}' keeps a thread waiting: only a deployed profile may have it", place)
    if field != "match_features":
        _parse(text, Position(name, 1, 1), is_exact=True)
        return
    for start, feature in find_features(text, name):
        _parse(feature, position_of(text, start, name), is_exact=False)


def _parse(text: str, start: Position, *, is_exact: bool) -> None:
    """Parses an expression that begins at a place. `is_exact`: problems have their own place, not that of the start."""
    try:
        parse_expression(text, start.source)
    except LanguageError as error:
        raise LanguageError(error.bare_message, (error.position if is_exact else None) or start) from None
    except TooLarge as error:
        raise LanguageError(error.message, start) from None


def profile_with(profile: RankProfile, expressions: RankExpressions) -> RankProfile:
    """The rank profile with the expressions of a query in place of its own. Errors: LanguageError."""
    changes: dict[str, Any] = {}
    positions = dict(profile.expression_positions)
    for field in ("first_phase", "second_phase"):
        if getattr(expressions, field) is not None:
            changes[field] = getattr(expressions, field)
            positions[_KINDS[field]] = Position(PARAMETERS[field], 1, 1)
    if expressions.global_phase is not None:
        own = profile.global_phase or GlobalPhase("")
        start = Position(GLOBAL_PHASE, 1, 1)
        changes["global_phase"] = replace(own, expression=expressions.global_phase, position=start)
    if expressions.match_features is not None:
        text = expressions.match_features
        features = find_features(text, MATCH_FEATURES)
        changes["match_features"] = tuple(dict.fromkeys(feature for _, feature in features))
        for start_, feature in reversed(features):
            positions[f"match-features {feature}"] = position_of(text, start_, MATCH_FEATURES)
    return replace(profile, **changes, expression_positions=positions)
