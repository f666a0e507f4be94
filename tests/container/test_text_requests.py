"""Compiled plans answer as the general steps do, byte for byte: random texts, filters and pages over random documents.

The peer asks the same content node, and is told of each text that there is no plan for it.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlencode

import orjson
import pytest

from paperwasp import limits
from paperwasp.cluster.messenger import EmbeddedMessenger
from paperwasp.cluster.operation_log import FileOperationLog
from paperwasp.cluster.worker_pool import WorkerPool
from paperwasp.container.search.handler import ClusterConfig, SearchConfig, SearchHandler
from paperwasp.container.search.kept_queries import Kept
from paperwasp.container.search.text_requests import _WINDOWS
from paperwasp.content.node import ContentNode
from paperwasp.content.row_filling import RowFilling
from paperwasp.core import _core
from paperwasp.http.messages import Request, Response
from paperwasp.schema import parse_schemas
from paperwasp.search.bind import known_words
from paperwasp.search.compiled import _KEPT_CHARACTERS, _KEY_BYTES
from paperwasp.search.served import ServedSchemas
from paperwasp.search.text_query import TextAnswer, TextQuery
from paperwasp.service.content_service import ContentService
from tests.container.search_nodes import CLUSTER_OF, Running, put, remove, update

SCHEMA = """
schema music {
  document music {
    field title type string { indexing: index | summary
      index: enable-bm25 }
    field body type string { indexing: index | summary
      index: enable-bm25 }
    field parts type array<string> { indexing: index | summary
      index: enable-bm25 }
    field label type string { indexing: index | summary
      match: word }
    field year type int { indexing: attribute | summary }
    field price type double { indexing: attribute }
    field name type string { indexing: attribute | summary }
    field sizes type array<int> { indexing: attribute }
  }
  fieldset default { fields: title, body }
  fieldset mixed { fields: title, name }
  rank-profile body { first-phase { expression: bm25(body) } }
  rank-profile both { first-phase { expression: bm25(title) + bm25(body) } }
  rank-profile tuned inherits body { rank-properties { bm25(body).k1: 0.4
    bm25(body).b: 0.2 } }
  rank-profile parts { first-phase { expression: bm25(parts) } }
  rank-profile weighed { first-phase { expression: 3 * bm25(title) + bm25(body) } }
  rank-profile dropping inherits body { first-phase { rank-score-drop-limit: 0.5 } }
  rank-profile again inherits body { second-phase { expression: attribute(year) } }
  rank-profile native { first-phase { expression: nativeRank } }
  rank-profile few inherits native { rank-properties { nativeRank.attributeMatchWeight: 7
    nativeAttributeMatch.weightTable.year: "linear(0,3)" } }
  rank-profile matching { first-phase { expression: nativeFieldMatch(body) } }
  document-summary short { summary title {} }
  document-summary bold { summary body { bolding: on } }
}
"""
WORDS = (
    *(
        "running",
        "runs",
        "cats",
        "don't",
        "rock-n-roll",
        "blue",
        "sorted_list",
        "UTF-8",
        "3.5",
        "v2.0",
        "x=y",
        "Straße",
    ),
    *("a", "the", "of", "in", "the", "the", "of", "a", "in"),
)
FILTERS = (
    "year < {0}",
    "year >= {0} and price < {0}.5",
    "year in ({0}, 3, 7)",
    "year = {0}",
    "name contains 'n{0}'",
    "sizes = {0}",
    "({{weight: 300}}(year > {0}))",
    "({{ranked: false}}(year > {0}))",
    "title contains 'blue'",
    "label contains 'l{0}'",
    "!(year < {0})",
    "body contains 'cats'",
    "range(year, {0}, Infinity)",
    "({{hitLimit: 20}}range(year, {0}, 30))",
)
QUERIES = int(os.environ.get("PAPERWASP_COMPILED_QUERIES", "600"))


class General(EmbeddedMessenger):
    """Tells of each text that there is no plan for it."""

    def __init__(self, messenger: EmbeddedMessenger) -> None:
        super().__init__()
        self._handlers = messenger._handlers

    def hand(self, address: str, message: object, reply: Callable[[object], None]) -> None:
        reply(None)


class Counting(EmbeddedMessenger):
    """Counts the texts that a plan answered."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = 0

    def hand(self, address: str, message: object, reply: Callable[[object], None]) -> None:
        assert isinstance(message, TextQuery)

        def counted(answer: object) -> None:
            self.answered += isinstance(answer, TextAnswer)
            reply(answer)

        super().hand(address, message, counted)


class Peers:
    """The same content node, asked with plans and without."""

    def __init__(self, compiled: Running, general: Running, messenger: Counting, service: ContentService) -> None:
        self.compiled = compiled
        self._general = general
        self._messenger = messenger
        self.service = service

    @property
    def answered(self) -> int:
        """How many texts a plan has answered."""
        return self._messenger.answered

    def compare(self, **parameters: object) -> bytes:
        """The answer, which is the same in both ways. Something else is asked before, so that its shape is prepared."""
        self.compiled.answer(**parameters | ({"query": "warm up"} if "query" in parameters else {}))
        found = self.compiled.answer(**parameters)
        wanted = self._general.answer(**parameters)
        assert (found.status, found.body) == (wanted.status, wanted.body), parameters
        facts, others = found.about, wanted.about
        assert isinstance(facts, tuple) and isinstance(others, tuple)
        assert (facts[:2], facts[3]) == (others[:2], others[3]), parameters
        return found.body

    def fill_rows(self) -> None:
        """Does at once what a chore does within a second: only documents in the row store are rendered by plans."""
        node = self.compiled.nodes["media"]
        filling = RowFilling(node.reader)
        while node.reader.view().rows.limit < node.reader.view().limit:
            filling()


@contextmanager
def peers() -> Iterator[Peers]:
    schema = parse_schemas({"schemas/music.sd": SCHEMA}).schemas["music"]
    messenger = Counting()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory()))
        loop = asyncio.new_event_loop()
        stack.callback(loop.close)
        log = FileOperationLog(directory / "log")
        stack.callback(log.close)
        node = ContentNode(directory / "node", log)
        stack.callback(node.stop)
        node.configure(1, {"music": schema})
        pool = WorkerPool("media")
        stack.callback(pool.close)
        service = ContentService(node, pool, ServedSchemas())
        messenger.serve("content/media", service.handle)
        config = SearchConfig((ClusterConfig("media", {"music": schema}),))
        nodes = {"media": node}
        compiled = Running(SearchHandler(messenger, config), nodes, loop)
        general = Running(SearchHandler(General(messenger), config), nodes, loop)
        stack.callback(lambda: loop.run_until_complete(asyncio.wait_for(_nothing(), 10)))
        stack.callback(service.close)
        yield Peers(compiled, general, messenger, service)


async def _nothing() -> None:
    """A turn of the loop."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Peers]:
    """A node with random documents, some of them removed, replaced or changed in place, and some not in the rows."""
    assert CLUSTER_OF["music"] == "media"
    choice = random.Random(7)
    with peers() as found:
        found.compiled.apply(*(document(choice, number) for number in range(400)))
        found.compiled.apply(*(remove(number) for number in range(0, 400, 13)))
        found.compiled.apply(*(document(choice, number) for number in range(0, 400, 29)))
        found.fill_rows()
        found.compiled.apply(*(update(number, year=1) for number in range(5, 400, 97)))
        found.compiled.apply(*(document(choice, number) for number in range(400, 403)))
        yield found


def document(choice: random.Random, number: int) -> Any:
    return put(
        number,
        title=text(choice, 4),
        body=text(choice, 20),
        parts=[text(choice, 3) for _ in range(choice.randrange(3))],
        label=f"l{choice.randrange(4)}",
        year=choice.randrange(40),
        price=choice.randrange(80) / 2,
        name=f"n{choice.randrange(40)}",
        sizes=[choice.randrange(6) for _ in range(choice.randrange(4))],
    )


def text(choice: random.Random, words: int) -> str:
    return " ".join(word(choice) for _ in range(choice.randint(1, words)))


def word(choice: random.Random) -> str:
    return choice.choice((*WORDS, f"w{int(choice.paretovariate(0.6)) % 500}"))


INDEXES = ("body", "title", "parts", "default", "label", "mixed", "name")
PROFILES = ("body", "both", "tuned", "parts", "weighed", "dropping", "again", "native", "few", "matching")
PLAIN = (
    *(("body", "body"), ("body", "tuned"), ("default", "both"), ("parts", "parts"), ("default", "body")),
    *(
        ("default", "native"),
        ("default", "native"),
        ("default", "few"),
        ("body", "native"),
        ("title", "matching"),
        ("default", "matching"),
    ),
)
"""Indexes, and profiles that rank by their fields."""
MORE: Mapping[str, tuple[object, ...]] = {
    "hits": (0, 1, 3, 50),
    "offset": (1, 7, 1000),
    "language": ("de", "en", "ja"),
    "presentation.summary": ("short", "bold"),
    "ranking.features.query(x)": (3,),
    "model.filter": ("+blue",),
    "timeout": ("9s",),
}


def query(choice: random.Random) -> dict[str, object]:
    count = choice.choice((0, 0, 0, 1, 1, 2))
    filters = [choice.choice(FILTERS).format(choice.choice((1, 5, 30))) for _ in range(count)]
    index, ranking = (
        choice.choice(PLAIN) if choice.random() < 0.7 else (choice.choice(INDEXES), choice.choice(PROFILES))
    )
    odd = choice.choice((word(choice), f"({word(choice)}) -{word(choice)}", f'"{text(choice, 3)}"', ""))
    parts: dict[str, object] = {
        "yql": f"select {choice.choice(('*', '*', '*', 'title, year'))} from music where "
        + " and ".join(["userQuery()", *filters]),
        "query": text(choice, 5) if choice.random() < 0.8 else odd,
        "type": choice.choice(("any", "all", "phrase", "weakAnd", "weakAnd", "web")),
        "ranking": ranking,
        "default-index": index,
        "nocache": choice.choice(("true", "false")),
    }
    return parts | {name: choice.choice(values) for name, values in MORE.items() if choice.random() < 0.08}


def statement(choice: random.Random) -> dict[str, object]:
    """A query for words that stand in its statement."""
    index, ranking = choice.choice(PLAIN)

    def contains() -> str:
        field = index if choice.random() < 0.9 else choice.choice(INDEXES)
        notes = choice.choice(("{stem: false}", "{weight: 200}", "{ranked: false}")) if choice.random() < 0.04 else ""
        looked_for = word(choice) if choice.random() < 0.9 else text(choice, 3)
        return f'{field} contains ({notes}"{looked_for}")'

    words = [contains() for _ in range(choice.choice((1, 2, 2, 3, 4)))]
    kind = choice.choice(("and", "and", "or", "weakAnd", "targets"))
    if kind in ("and", "or"):
        where = f" {kind} ".join(words)
    else:
        where = f"{'{targetHits: 5}' if kind == 'targets' else ''}weakAnd({', '.join(words)})"
    count = choice.choice((0, 0, 0, 1, 1, 2))
    filters = [choice.choice(FILTERS).format(choice.choice((1, 5, 30))) for _ in range(count)]
    whole = " and ".join([f"({where})" if filters and kind != "and" else where, *filters])
    parts: dict[str, object] = {
        "yql": f"select {choice.choice(('*', '*', '*', 'title, year'))} from music where {whole}",
        "ranking": ranking if choice.random() < 0.8 else choice.choice(PROFILES),
        "nocache": choice.choice(("true", "false")),
    }
    return parts | {name: choice.choice(values) for name, values in MORE.items() if choice.random() < 0.08}


@pytest.mark.parametrize("seed", range(4))
def test_random_words_of_statements_have_the_same_answers_either_way(shared: Peers, seed: int) -> None:
    choice = random.Random(seed)
    before = shared.answered
    for _ in range(QUERIES // 4):
        shared.compare(**statement(choice))
    assert shared.answered - before > QUERIES // 20, "plans have answered too few queries to say anything"


@pytest.mark.parametrize("seed", range(4))
def test_random_texts_have_the_same_answers_either_way(shared: Peers, seed: int) -> None:
    choice = random.Random(seed)
    before = shared.answered
    for _ in range(QUERIES // 4):
        shared.compare(**query(choice))
    assert shared.answered - before > QUERIES // 40, "plans have answered too few texts to say anything"


ASKED: Final = [
    {"yql": "select * from music where userQuery()", "query": text(choice, 4), "type": "any", "ranking": "body"}
    | {"default-index": "body", "nocache": "true"}
    for choice in [random.Random(11)]
    for _ in range(60)
]


@pytest.mark.parametrize("waiting", [2, limits.QUERY_QUEUE_LENGTH])
def test_many_texts_at_once_run_on_threads_of_the_core(
    shared: Peers, waiting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those beyond the queue's length run where they are."""
    monkeypatch.setattr(limits, "QUERY_QUEUE_LENGTH", waiting)
    wanted = [shared.compare(**each) for each in ASKED]
    before = shared.answered
    assert [answer.body for answer in at_once(shared, ASKED)] == wanted
    assert shared.answered > before
    assert shared.service._runs.uses_threads


def test_what_takes_long_never_runs_on_the_loop(shared: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run counts as long: those beyond the queue's length are found the general way."""
    wanted = [shared.compare(**each) for each in ASKED]
    monkeypatch.setattr(limits, "INLINE_QUERY_NS", 0)
    shared.service.resize(3)
    before = shared.answered
    with monkeypatch.context() as patch:
        patch.setattr(_core.PlanRun, "run", None)  # of a thread of Python
        assert [answer.body for answer in at_once(shared, ASKED[:20])] == wanted[:20]
    assert shared.answered > before
    monkeypatch.setattr(limits, "QUERY_QUEUE_LENGTH", 1)
    assert [answer.body for answer in at_once(shared, ASKED)] == wanted


@pytest.mark.parametrize("ends", ["close", "resize"])
def test_what_waits_is_answered_when_the_threads_end(ends: str) -> None:
    with peers() as found:
        found.compiled.apply(*(put(number, body=f"one w{number}") for number in range(100)))
        found.fill_rows()
        asked = {"yql": "select * from music where userQuery()", "type": "any", "ranking": "body"} | {
            "default-index": "body"
        }
        found.compiled.answer(query="warm up", **asked)
        requests = [Request("GET", "/search/", urlencode(asked | {"query": f"one w{n}"})) for n in range(40)]

        async def ask_all() -> list[Response]:
            tasks = [asyncio.ensure_future(found.compiled.handler.handle(request)) for request in requests]
            await _nothing_else_first()
            assert found.service._runs.uses_threads
            found.service._runs.close() if ends == "close" else found.service.resize(5)
            return await asyncio.gather(*tasks)

        answers = found.compiled._loop.run_until_complete(asyncio.wait_for(ask_all(), 30))
        assert [total(answer.body) for answer in answers] == [100] * 40


async def _nothing_else_first() -> None:
    """Lets tasks that were made begin."""
    turn = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turn.set_result, None)
    await turn


def at_once(shared: Peers, asked: Sequence[dict[str, str]]) -> list[Response]:
    handler = shared.compiled.handler

    async def ask_all() -> list[Response]:
        requests = [Request("GET", "/search/", urlencode({"timeout": "60s"} | each)) for each in asked]
        return await asyncio.gather(*(handler.handle(request) for request in requests))

    return shared.compiled._loop.run_until_complete(ask_all())


def test_words_that_are_fed_later_are_found() -> None:
    with peers() as found:
        found.compiled.apply(put(1, body="one two"), put(2, body="two"))
        found.fill_rows()
        asked = {
            "yql": "select * from music where userQuery()",
            "type": "any",
            "ranking": "body",
            "default-index": "body",
        }
        for _ in range(2):
            assert total(found.compare(query="three", **asked)) == 0
        found.compiled.apply(put(3, body="three two"))
        found.fill_rows()
        assert total(found.compare(query="three", **asked)) == 1
        assert total(found.compare(query="two", **asked)) == 3
        found.compiled.apply(remove(1), update(2, year=5))
        assert total(found.compare(query="two one", **asked)) == 2
        assert found.answered >= 3


def test_documents_that_are_not_in_the_row_store_are_shown_by_plans() -> None:
    """Where more are left than a query may write on the event loop, it goes the general way."""
    with peers() as found:
        found.compiled.apply(*(put(number, body=f"one w{number}", year=number) for number in range(40)))
        found.fill_rows()
        found.compiled.apply(*(update(number, year=7) for number in range(0, 40, 9)), remove(3))
        found.compiled.apply(*(put(number, body="one", year=number) for number in range(40, 200)))
        for show in ("*", "title, year", "documentid, body"):
            asked = {"yql": f"select {show} from music where userQuery()", "type": "any", "ranking": "body"}
            before = found.answered
            shown = {
                str(hits): found.compare(query="one w9", hits=hits, **{"default-index": "body"}, **asked)
                for hits in (9, 60)
            }
            assert found.answered > before + 1
            assert [len(orjson.loads(body)["root"]["children"]) for body in shown.values()] == [9, 60]
        before = found.answered
        found.compare(query="one w9", hits=190, **{"default-index": "body"}, **asked)
        assert found.answered == before + 1, "only what is asked before"


def test_a_text_whose_time_is_over_has_the_general_answer(shared: Peers) -> None:
    asked = {"yql": "select * from music where userQuery()", "type": "any", "ranking": "body", "default-index": "body"}
    for timeout in ("0s", "1ms", "20s"):
        shared.compiled.answer(query="the of a", timeout=timeout, nocache="true", **asked)
    root = orjson.loads(shared.compiled.answer(query="the of b", timeout="0s", **asked).body)["root"]
    assert root["errors"][0]["code"] == 12


def test_bitmaps_of_filters_make_room_for_each_other(shared: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    view = shared.compiled.nodes["media"].reader.view()
    bitmap_bytes = (view.limit + 63) // 64 * 8 + _KEY_BYTES
    monkeypatch.setattr(limits, "VIEW_FILTER_BYTES", 5 * bitmap_bytes)
    asked = {"query": "the", "type": "any", "ranking": "body", "default-index": "body"}
    known = known_words(view, "music")
    before = shared.answered
    for year in range(20):
        shared.compare(yql=f"select * from music where userQuery() and year < {year}", **asked)
        assert len(known.filters) <= 5
    kept = set(known.filters)
    shared.compare(yql=f"select * from music where userQuery() and name contains '{'n' * _KEPT_CHARACTERS}'", **asked)
    assert set(known.filters) == kept
    assert shared.answered > before


def test_windows_and_languages_are_kept_within_bounds(shared: Peers) -> None:
    asked = {"yql": "select * from music where userQuery()", "type": "any", "ranking": "body", "default-index": "body"}
    before = shared.answered
    for number in range(2 * _WINDOWS):
        shared.compare(query=f"the w{number}", timeout=f"{20 + number}s", **asked)
    kept = [entry.content for entry in shared.compiled.handler.prepared._entries.values()]
    counts = [len(each.texts._windows) for each in kept if isinstance(each, Kept) and each.texts is not None]
    assert 0 < max(counts) <= _WINDOWS
    for number in range(300):
        language = f"{chr(97 + number % 26)}{chr(97 + number // 26)}"
        shared.compiled.answer(query="the of", language=language, **asked)
    assert shared.answered > before


def test_a_closed_cluster_runs_texts_where_they_are_asked() -> None:
    with peers() as found:
        found.compiled.apply(put(1, body="one two"))
        found.fill_rows()
        found.service._runs.close()
        asked = {
            "yql": "select * from music where userQuery()",
            "type": "any",
            "ranking": "body",
            "default-index": "body",
        }
        answers = at_once(found, [asked | {"query": f"one x{number}"} for number in range(20)])
        assert [total(answer.body) for answer in answers] == [1] * 20


def total(body: bytes) -> int:
    count: int = orjson.loads(body)["root"]["fields"]["totalCount"]
    return count
