"""OpenSearch, one node with its own HTTP server, as a process: the search server that is built on Lucene.

Maven fetches its server from Maven Central and compiles the small program of bench/opensearch that starts it.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench.corpus import CACHE
from bench.http_kinds import INDEX
from bench.java_program import JavaProgram
from bench.lucene_peer import PASSAGE_FIELDS
from bench.service import Running, process

BATCH_DOCUMENTS: Final = 2000
TIMEOUT_SECONDS: Final = 600
_PROGRAM: Final = JavaProgram("OpenSearch", Path(__file__).parent / "opensearch", CACHE / "opensearch-build")
_JAVA: Final = ("-Xms1g", "-Xmx1g", "-Dorg.apache.logging.log4j.level=FATAL")
"""The heap that OpenSearch has by default, and nothing but the ready line on standard output."""
_TEXT: Final = {"type": "text", "analyzer": "stems"}
_SETTINGS: Final[dict[str, Any]] = {
    "settings": {
        "number_of_shards": 1,
        "number_of_replicas": 0,
        "refresh_interval": "-1",
        "analysis": {"analyzer": {"stems": {"tokenizer": "standard", "filter": ["lowercase", "kstem"]}}},
    },
    "mappings": {
        "properties": {
            "title": _TEXT,
            "body": _TEXT,
            "category": {"type": "keyword"},
            "year": {"type": "integer"},
            "percentile": {"type": "integer"},
        }
    },
}


@contextlib.contextmanager
def serving(feed_file: Path) -> Iterator[Running]:
    """A node with the documents of a feed file in one segment. Errors: NotInstalled."""
    home = CACHE / f"opensearch-{feed_file.stem}"
    if not home.exists():
        unfinished = home.with_name(f"{home.name}-unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        with _node(unfinished) as server:
            _fill(server, feed_file)
        unfinished.rename(home)
    with _node(home) as server:
        _call(server, "GET", f"/_cluster/health/{INDEX}?wait_for_status=green&timeout=60s")
        yield server


@contextlib.contextmanager
def _node(home: Path) -> Iterator[Running]:
    with process(_PROGRAM.command(str(home), java=_JAVA)) as server:
        yield server


def _fill(server: Running, feed_file: Path) -> None:
    _call(server, "PUT", f"/{INDEX}", json.dumps(_SETTINGS))
    with feed_file.open(encoding="utf-8") as lines:
        while batch := list(itertools.islice(lines, BATCH_DOCUMENTS)):
            answer = _call(server, "POST", f"/{INDEX}/_bulk", "".join(map(_indexing, batch)))
            if answer["errors"]:
                raise AssertionError(f"OpenSearch refused documents: {str(answer)[:500]}")
    _call(server, "POST", f"/{INDEX}/_forcemerge?max_num_segments=1")
    _call(server, "POST", f"/{INDEX}/_flush")


def _indexing(line: str) -> str:
    """A line of the feed file as the two lines that OpenSearch takes."""
    operation = json.loads(line)
    fields = {name: operation["fields"][name] for name in PASSAGE_FIELDS}
    return json.dumps({"index": {"_id": operation["put"]}}) + "\n" + json.dumps(fields) + "\n"


def _call(server: Running, method: str, path: str, body: str = "") -> dict[str, Any]:
    """Errors: AssertionError unless the answer says 200."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request(method, path, body.encode(), {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
    finally:
        connection.close()
    if response.status != 200:
        raise AssertionError(f"OpenSearch: {method} {path}: {response.status} {content[:500]!r}")
    answer: dict[str, Any] = json.loads(content)
    return answer
