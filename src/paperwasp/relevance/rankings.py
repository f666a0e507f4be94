"""Asks all queries of a collection, one ranking after the other, and keeps which documents come at which place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import orjson
from msgspec import Struct, field

from paperwasp.client.connection import Connection
from paperwasp.embedded.service import Service
from paperwasp.errors import InvalidInput, InvalidQuery
from paperwasp.relevance.collection import Queries

# Whom the queries are asked: a service that runs, or one in this process.


@contextmanager
def asking(url: str, application: Path | None, feed: Sequence[Path]) -> Iterator[Ask]:
    """Return a function that asks queries: of the application, fed with these files, where one is given; else of
    the service at `url`.

    Errors: InvalidInput for files that are refused; Unreachable; what is wrong with the application.
    """
    if application is None:
        if feed:
            raise InvalidInput("--feed is for an application that is started here: name its package")
        connection = Connection(url)
        try:
            yield lambda parameters: _answer(*connection.request("POST", "/search/", orjson.dumps(parameters)))
        finally:
            connection.close()
        return
    with Service(application) as service:
        for file in feed:
            result = service.feed(file)
            if result.failed:
                first = result.problems[0]
                raise InvalidInput(f"{file}: {result.failed} documents are refused, first {first.id}: {first.message}")
        yield ask_service(service)


def ask_service(service: Service) -> Ask:
    """Return a function that asks a service in this process."""
    return lambda parameters: _complete(service.query(dict(parameters)).json)


def _answer(status: int, body: bytes) -> Mapping[str, Any]:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise InvalidInput(f"The service answered {status} without JSON") from None
    return _complete(answer)


def _complete(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer, if all was searched: half an answer would be measured as a bad ranking. Errors: InvalidQuery."""
    errors = answer.get("root", {}).get("errors")
    if errors:
        raise InvalidQuery(f"{errors[0].get('summary')}: {errors[0].get('message', '')}")
    if "root" not in answer:
        raise InvalidInput(str(answer.get("message") or answer.get("error") or "No answer to a query"))
    return answer


YQL: Final = 'select * from sources * where {grammar: "tokenize"}userInput(@query)'
"""All words of the query count, and none is needed: a weakAnd. Quotes, hyphens and signs mean nothing: the queries of
collections are texts, in which quoted and hyphenated words would have to match as phrases."""


_TRACED: Final[Mapping[str, object]] = {"trace.level": 1, "hits": 1}
_TRACED_ONES: Final = 3
"""How many queries are traced: a field that none of them searches is hardly searched by others."""


class Ask(Protocol):
    """Asks the search API. Errors: what is wrong with the query."""

    def __call__(self, parameters: Mapping[str, object]) -> Mapping[str, Any]: ...


class Ranking(Struct, frozen=True):
    """A ranking to be compared: a rank profile, or an expression, and other parameters of its queries."""

    name: str
    parameters: Mapping[str, object] = field(default_factory=dict)


class RankedDocument(Struct, frozen=True):
    """A document at its place."""

    id: str
    score: float


Run = Mapping[str, Sequence[RankedDocument]]
"""Query → its documents, best first, each once."""


def notes_of(
    ask: Ask, queries: Queries, wanted: Sequence[str], ranking: Ranking, parameters: Mapping[str, object]
) -> list[str]:
    """Return the message that the traces of all first queries have of a ranking that cannot score.

    Errors: those of asking.
    """
    asked = (
        {**parameters, **ranking.parameters, **_TRACED, "query": queries[query]} for query in wanted[:_TRACED_ONES]
    )
    found = [dict.fromkeys(_notes_in(ask(each).get("trace"))) for each in asked]
    return [note for note in found[0] if all(note in others for others in found)] if found else []


def _notes_in(trace: object) -> Iterator[str]:
    if isinstance(trace, list):
        for each in trace:
            yield from _notes_in(each)
    elif isinstance(trace, dict):
        if trace.get("tag") == "warning":
            yield str(trace.get("message"))
        for member in ("children", "message", "traces"):
            yield from _notes_in(trace.get(member))


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
