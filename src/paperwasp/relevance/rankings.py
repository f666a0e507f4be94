"""Asks all queries of a collection, one ranking after the other, and keeps which documents come at which place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Protocol

from paperwasp.errors import InvalidInput
from paperwasp.records import dataclass
from paperwasp.relevance.collection import Queries

YQL: Final = 'select * from sources * where {grammar: "tokenize"}userInput(@query)'
"""All words of the query count, and none is needed: a weakAnd. Quotes, hyphens and signs mean nothing: the queries of
collections are texts, in which quoted and hyphenated words would have to match as phrases."""


class Ask(Protocol):
    """Asks the search API. Errors: what is wrong with the query."""

    def __call__(self, parameters: Mapping[str, object]) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Ranking:
    """What is compared: a rank profile, or an expression, and whatever else is to be asked differently."""

    name: str
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A document at its place."""

    id: str
    score: float


Run = Mapping[str, Sequence[RankedDocument]]
"""Query → its documents, best first, each once."""


def ask_all(
    ask: Ask,
    queries: Queries,
    wanted: Sequence[str],
    ranking: Ranking,
    parameters: Mapping[str, object],
    id_field: str | None,
    report: Callable[[], None],
) -> Run:
    """The run of a ranking over the wanted queries. `id_field` has the ids of the judgments; None: the last part of the
    document id is. `report` is called after each query. Errors: those of asking; InvalidInput for hits without ids."""
    run: dict[str, Sequence[RankedDocument]] = {}
    for query in wanted:
        answer = ask({**parameters, **ranking.parameters, "query": queries[query]})
        run[query] = _ranked(answer["root"].get("children", ()), id_field)
        report()
    return run


def _ranked(hits: Sequence[Mapping[str, Any]], id_field: str | None) -> list[RankedDocument]:
    """The documents in the order of the hits. Hits may be parts of one document, which has the place of its first."""
    found: dict[str, RankedDocument] = {}
    for hit in hits:
        identity = identity_of(hit, id_field)
        found.setdefault(identity, RankedDocument(identity, hit.get("relevance", 0.0)))
    return list(found.values())


def identity_of(hit: Mapping[str, Any], id_field: str | None) -> str:
    """The id of a hit as judgments have it. Errors: InvalidInput for one that does not say it."""
    fields = hit.get("fields", {})
    if id_field is not None:
        if id_field not in fields:
            raise InvalidInput(f"A hit has no field '{id_field}', which was to have its id: {hit.get('id')}")
        return str(fields[id_field])
    identity = str(fields.get("documentid") or hit.get("id", ""))
    if not identity.startswith("id:"):
        raise InvalidInput(f"The hit '{identity}' does not say its document id: name a field with ids (--id-field)")
    return identity.split(":", 4)[4]
