"""Match features of judged documents, as training data for a model that ranks.

For each query its best hits are asked for, as the profile finds them; each hit is a row: the query, the document, its
relevance by the judgments (0 where they say nothing), its score, and a column for each match feature that is a
number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from paperwasp.errors import InvalidInput
from paperwasp.relevance.collection import Judgments, Queries
from paperwasp.relevance.rankings import Ask

_FEATURES_MEMBER: Final = "matchfeatures"


def collect_features(
    ask: Ask,
    queries: Queries,
    judgments: Judgments,
    wanted: Sequence[str],
    parameters: Mapping[str, object],
    identify: Callable[[Mapping[str, Any]], str],
    report: Callable[[], None],
) -> Iterator[dict[str, Any]]:
    """The rows, query by query. Errors: InvalidInput where hits have no match features; those of asking."""
    for query in wanted:
        answer = ask({**parameters, "query": queries[query]})
        for hit in answer["root"].get("children", ()):
            features = hit.get("fields", {}).get(_FEATURES_MEMBER)
            if features is None:
                raise InvalidInput(
                    "Hits have no match features: list them in the rank profile (match-features), or name them with "
                    "--feature"
                )
            document = identify(hit)
            row = {"query": query, "document": document, "relevance": judgments[query].get(document, 0)}
            numbers = {name: value for name, value in features.items() if isinstance(value, int | float)}
            yield {**row, "score": hit.get("relevance", 0.0), **numbers}
        report()
