"""Whom the queries are asked: a service that runs, or one in this process for as long as it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from paperwasp.client.connection import Connection
from paperwasp.embedded.service import Service
from paperwasp.errors import InvalidInput, InvalidQuery
from paperwasp.relevance.rankings import Ask


@contextmanager
def asking(url: str, application: Path | None, feed: Sequence[Path]) -> Iterator[Ask]:
    """What asks queries: of the application, fed with these files, where one is given; else of the service at `url`.

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
    """What asks a service in this process."""
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
