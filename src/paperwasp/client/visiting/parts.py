"""One part of a visit: a slice of a bucket space of a content cluster, in chunks, each with the place behind it.

A chunk is given when the service has said where to go on behind it. So whatever breaks, no document is given twice.
Vespa: https://docs.vespa.ai/en/reference/api/document-v1.html
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass
from paperwasp.client.access import ANYBODY, Access
from paperwasp.client.connection import Connection, Unreachable
from paperwasp.errors import InvalidInput

SPACES: Final = ("global", "default")
"""The bucket spaces: documents that are on all nodes, which others may refer to, come first."""
_PATH: Final = "/document/v1/"
_ACCEPT: Final = {"Accept": "application/json, application/jsonl"}
_LINES: Final = "application/jsonl"
_RETRIES: Final = 10
_FIRST_WAIT_SECONDS: Final = 0.05
_LONGEST_WAIT_SECONDS: Final = 5.0
_PAGE_DOCUMENTS: Final = 1024
_MOST_BYTES: Final = 1 << 24
"""Of lines that are held until the service says where to go on."""
_SHOWN_BYTES: Final = 80
_CLUSTERS: Final = compile_later(r"no content cluster '\*', only (.*)", re.IGNORECASE)
_QUOTED: Final = compile_later(r"'([^']*)'")
_DOCUMENTS: Final = (b'{"put"', b'{"remove"')


@dataclass(frozen=True, slots=True)
class VisitOptions:
    """Which documents are visited, and how."""

    url: str
    access: Access = ANYBODY
    cluster: str | None = None
    """None: all content clusters."""
    schema: str | None = None
    """A document type; those that inherit it are visited, too."""
    selection: str | None = None
    field_set: str | None = None
    slices: int = 1
    timeout_seconds: float | None = None

    def full_selection(self) -> str | None:
        """The selection with that of the document type."""
        if self.schema and self.selection:
            return f"{self.schema} and ({self.selection})"
        return self.schema or self.selection

    def what(self) -> dict[str, object]:
        """What a visit that goes on must have in common with the one that was interrupted."""
        return {
            "cluster": self.cluster,
            "selection": self.full_selection(),
            "fieldSet": self.field_set,
            "slices": self.slices,
        }


class Part(NamedTuple):
    """A slice of a bucket space of a cluster."""

    cluster: str
    space: str
    slice: int


class Chunk(NamedTuple):
    """Documents of a part as lines of JSON, each with its end, and where the visit goes on behind them."""

    part: Part
    lines: list[bytes]
    token: str | None
    """None where the service has not said it."""
    percent: float
    is_last: bool


class _Broken(Exception):
    """The answer ended, or was refused, in a way that makes another attempt worth while."""


def find_parts(options: VisitOptions) -> list[Part]:
    """The parts of a visit, in the order in which they are begun. Errors: Unreachable, InvalidInput."""
    clusters = [options.cluster] if options.cluster else _find_clusters(options)
    slices = range(options.slices)
    return [Part(cluster, space, number) for space in SPACES for cluster in clusters for number in slices]


def _find_clusters(options: VisitOptions) -> list[str]:
    """All content clusters: the service names them to whoever asks for one that there is not."""
    asked = urlencode({"cluster": "*", "wantedDocumentCount": 1})
    with closing(Connection(options.url, access=options.access)) as connection:
        message = str(connection.json("GET", f"{_PATH}?{asked}").get("message", ""))
    match = _CLUSTERS.search(message)
    if match is None:
        raise InvalidInput(f"{options.url} does not say which content clusters there are: {message}")
    return _QUOTED.findall(match[1])


def read_part(options: VisitOptions, part: Part, token: str | None) -> Iterator[Chunk]:
    """Yields the chunks of a part from `token` on. What breaks off, or is refused since there is too much to do, is
    begun again behind the last chunk. Errors: Unreachable, InvalidInput."""
    attempts, read = 0, _read_stream
    with closing(Connection(options.url, access=options.access)) as connection:
        while True:
            try:
                for chunk in read(connection, options, part, token):
                    token, attempts = chunk.token or token, 0
                    yield chunk
                    if chunk.is_last:
                        return
            except _NotStreamed:
                read = _read_pages
            except (_Broken, Unreachable) as error:
                attempts += 1
                if attempts > _RETRIES:
                    message = f"Visiting '{part.cluster}' failed {attempts} times; the last time: {error}"
                    raise InvalidInput(message) from None
                time.sleep(min(_FIRST_WAIT_SECONDS * 2**attempts, _LONGEST_WAIT_SECONDS))
            connection.close()


class _NotStreamed(Exception):
    """The service knows no JSON lines."""


def _read_stream(connection: Connection, options: VisitOptions, part: Part, token: str | None) -> Iterator[Chunk]:
    """The chunks of an answer of JSON lines."""
    path = _path(options, part, token, {"stream": "true"})
    answer = connection.stream(path, _ACCEPT)
    if answer.status != 200:
        _refuse(answer.status, b"".join(answer.lines))
    if _LINES not in answer.content_type:
        raise _NotStreamed
    lines: list[bytes] = []
    held, message = 0, ""
    for line in answer.lines:
        content = None if line.startswith(_DOCUMENTS) and line.endswith(b"\n") else _read(line)
        if content is None or "put" in content or "remove" in content:
            lines.append(_to_feed(line if line.endswith(b"\n") else line + b"\n"))
            held += len(line)
            if held < _MOST_BYTES:
                continue
            content = {"continuation": {}}
            yield Chunk(part, lines, None, 0.0, False)
        elif "message" in content:
            message = _text(content["message"])
            continue
        elif "continuation" in content:
            found = content["continuation"]
            percent = float(found.get("percentFinished", 0.0))
            is_last = "token" not in found
            yield Chunk(part, lines, found.get("token"), percent, is_last)
            if is_last:
                return
        else:
            continue
        lines, held = [], 0
    raise _Broken(message or "the answer ended before the visit did")


def _to_feed(line: bytes) -> bytes:
    """A line as feeding takes it: streams name each document twice, as `put` and as `id`."""
    quoted, has_id, rest = line.removeprefix(b'{"put":').partition(b',"id":')
    return b'{"put":' + quoted + rest[len(quoted) :] if has_id and rest.startswith(quoted) else line


def _read(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        raise _Broken(f"a line of the answer is cut off or no JSON: {line[:_SHOWN_BYTES]!r}") from None


def _read_pages(connection: Connection, options: VisitOptions, part: Part, token: str | None) -> Iterator[Chunk]:
    """The chunks of answers of JSON objects, one request each."""
    while True:
        path = _path(options, part, token, {"wantedDocumentCount": str(_PAGE_DOCUMENTS)})
        status, content = connection.request("GET", path)
        if status != 200:
            _refuse(status, content)
        answer = orjson.loads(content)
        token = answer.get("continuation")
        lines = [orjson.dumps({"put": each["id"], "fields": each["fields"]}) + b"\n" for each in answer["documents"]]
        yield Chunk(part, lines, token, 0.0, token is None)
        if token is None:
            return


def _path(options: VisitOptions, part: Part, token: str | None, more: Mapping[str, str]) -> str:
    timeout = options.timeout_seconds
    parameters = {
        "cluster": part.cluster,
        "bucketSpace": part.space,
        "selection": options.full_selection(),
        "fieldSet": options.field_set,
        "slices": str(options.slices) if options.slices > 1 else None,
        "sliceId": str(part.slice) if options.slices > 1 else None,
        "timeout": None if timeout is None else f"{round(timeout * 1000)}ms",
        "continuation": token,
        **more,
    }
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{_PATH}?{urlencode(given, quote_via=quote)}"


def _refuse(status: int, content: bytes) -> None:
    """Errors: _Broken for what may be otherwise later, InvalidInput."""
    try:
        message = _text(orjson.loads(content)["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = content[:200].decode(errors="replace")
    if status == 429 or status >= 500:
        raise _Broken(f"status {status}: {message}")
    raise InvalidInput(f"The visit was refused with status {status}: {message}")


def _text(message: Any) -> str:
    return str(message.get("text", message)) if isinstance(message, dict) else str(message)
