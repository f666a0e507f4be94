"""foreach(dimension, variable, feature, condition, operation): a feature for each term, field or attribute.

The compiler of expressions puts the features, and the operation on them, in its place (`ranking.foreach`).
Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#foreach(dimension,variable,feature,condition,operation)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from paperwasp import limits
from paperwasp.errors import LanguageError
from paperwasp.ranking.foreach import DEFAULT_TERMS, OPERATIONS, condition_of
from paperwasp.search.features.family import Compute, RankSetup, register
from paperwasp.text.parsing.nearest import did_you_mean


def _terms(setup: RankSetup) -> tuple[str, ...]:
    most = setup.whole(DEFAULT_TERMS, limits.LISTED_TERMS, "foreach.maxTerms")
    return tuple(str(number) for number in range(most))


_DIMENSIONS: Final[Mapping[str, Callable[[RankSetup], tuple[str, ...]]]] = {
    "terms": _terms,
    "fields": lambda setup: setup.listed_index_fields,
    "attributes": lambda setup: setup.listed_attributes,
}
_PARAMETERS: Final = 5


def features_of_each(setup: RankSetup, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The features that foreach goes over. Raises LanguageError for wrong arguments."""
    if len(arguments) != _PARAMETERS:
        raise LanguageError(f"rank feature 'foreach' takes {_PARAMETERS} argument(s), not {len(arguments)}")
    dimension, variable, feature, condition, operation = arguments
    _one_of("what foreach goes over", dimension, tuple(_DIMENSIONS))
    _one_of("the operation of foreach", operation, OPERATIONS)
    try:
        condition_of(condition)
    except ValueError as error:
        raise LanguageError(str(error)) from None
    word = re.compile(rf"\b{re.escape(variable)}\b")
    return tuple(word.sub(lambda match, each=value: each, feature) for value in _DIMENSIONS[dimension](setup))  # type: ignore[misc]


@register("foreach", "name", "name", "name", "name", "name", outputs=("value",))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    raise LanguageError("foreach stands in expressions, which the features that it goes over are part of")


def _one_of(what: str, word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        raise LanguageError(f"{what} is {' or '.join(words)}, not {word!r}{did_you_mean(word, words)}")
