"""A content node that is asked with compiled plans and without, and random documents and queries for it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

from paperwasp.container.search.handler import ClusterConfig, SearchConfig, SearchHandler
from paperwasp.content.node import ContentNode
from paperwasp.content.upkeep.row_filling import RowFilling
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.coordination.operation_log import FileOperationLog
from paperwasp.coordination.worker_pool import WorkerPool
from paperwasp.http.messages import Request, Response
from paperwasp.schema import parse_schemas
from paperwasp.search.served import ServedSchemas
from paperwasp.search.text_query import RouteQuery, TextAnswer, TextQuery
from paperwasp.server.roles.content_service import ContentService
from tests.container.search.search_nodes import Running, put, remove, update
from tests.patience import patient_queries

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
    field shelf type string { indexing: attribute }
    field number type long { indexing: attribute }
    field level type byte { indexing: attribute }
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
  rank-profile expressed { first-phase { expression: 2 * log(1 + bm25(title)) + if (bm25(body) > 1, query(x), 0.5) }
    inputs { query(x) double: 3 } }
  rank-profile greatest { first-phase { expression: max(bm25(title), bm25(body) / 2) } }
  rank-profile native { first-phase { expression: nativeRank } }
  rank-profile few inherits native { rank-properties { nativeRank.attributeMatchWeight: 7
    nativeAttributeMatch.weightTable.year: "linear(0,3)" } }
  rank-profile matching { first-phase { expression: nativeFieldMatch(body) } }
  document-summary short { summary title {} }
  document-summary columns { summary year {} summary price {} summary name {} summary shelf {} summary level {} }
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
        "naïve",
    ),
    *("der", "und", "nicht", "les", "dans"),
    *("поезда", "Поезд", "синий", "τρένο", "μπλε", "קטר", "قطار", "tàu", "青い電車", "电车", "기차가"),
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


ORDERS = (
    *(f"order by {key}{way}" for key in ("year", "number", "level") for way in ("", " desc", " asc")),
    *("order by price", "order by name desc", "order by sizes", "order by year desc, number", "order by [relevance]"),
)


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
        if isinstance(message, RouteQuery):
            super().hand(address, message, reply)
            return
        assert isinstance(message, TextQuery)

        def counted(answer: object) -> None:
            self.answered += isinstance(answer, TextAnswer)
            reply(answer)

        super().hand(address, message, counted)


class Peers:
    """The same content node, asked with plans and without."""

    def __init__(self, compiled: Running, general: Running, messenger: Counting, service: ContentService) -> None:
        self.compiled = compiled
        self.general = general
        self._messenger = messenger
        self.service = service

    @property
    def answered(self) -> int:
        """How many texts a plan has answered."""
        return self._messenger.answered

    def compare(self, **parameters: object) -> bytes:
        """The answer, which is the same in both ways. Something else is asked before, so that its shape is prepared."""
        before = parameters | {name: "warm up" for name in ("query", "words") if name in parameters}
        return self.compare_requests(_get(before), _get(parameters))

    def compare_requests(self, before: Request, request: Request) -> bytes:
        """The same of any request."""
        self._answered(self.compiled, before)
        found, wanted = self._answered(self.compiled, request), self._answered(self.general, request)
        assert (found.status, found.body) == (wanted.status, wanted.body), request
        facts, others = found.about, wanted.about
        assert isinstance(facts, tuple) and isinstance(others, tuple)
        assert (facts[:2], facts[3]) == (others[:2], others[3]), request
        return found.body

    def _answered(self, running: Running, request: Request) -> Response:
        return running._loop.run_until_complete(running.handler.handle(request))

    def feed(self, made: Callable[[random.Random, int], Any]) -> None:
        """Feeds random documents, of which some are removed, replaced or changed in place, and some not in the rows."""
        choice, apply = random.Random(7), self.compiled.apply
        apply(*(made(choice, number) for number in range(400)))
        apply(*(remove(number) for number in range(0, 400, 13)))
        apply(*(made(choice, number) for number in range(0, 400, 29)))
        self.fill_rows()
        apply(*(update(number, year=1) for number in range(5, 400, 97)))
        apply(*(made(choice, number) for number in range(400, 403)))

    def fill_rows(self) -> None:
        """Does at once what a chore does within a second: only documents in the row store are rendered by plans."""
        node = self.compiled.nodes["media"]
        filling = RowFilling(node.reader)
        while node.reader.view().rows.limit < node.reader.view().limit:
            filling()


def _get(parameters: Mapping[str, object]) -> Request:
    return Request("GET", "/search/", urlencode({"timeout": "60s", **parameters}))


@contextmanager
def peers(source: str = SCHEMA) -> Iterator[Peers]:
    """`source`: of the schema `music`."""
    schema = parse_schemas({"schemas/music.sd": source}).schemas["music"]
    messenger = Counting()
    with ExitStack() as stack:
        stack.enter_context(patient_queries())
        directory = Path(stack.enter_context(TemporaryDirectory()))
        loop = asyncio.new_event_loop()
        stack.callback(loop.close)
        log = FileOperationLog(directory / "log")
        stack.callback(log.close)
        node = ContentNode(directory / "node", log)
        stack.callback(node.stop)
        node.configure(1, {"music": schema})
        pool = WorkerPool("media")
        stack.callback(pool.shutdown)
        service = ContentService(node, pool, ServedSchemas())
        messenger.serve("content/media", service.handle)
        config = SearchConfig((ClusterConfig("media", {"music": schema}),))
        nodes = {"media": node}
        compiled = Running(SearchHandler(messenger, config), nodes, loop)
        general = Running(SearchHandler(General(messenger), config), nodes, loop)
        stack.callback(lambda: loop.run_until_complete(asyncio.wait_for(_nothing(), 10)))
        stack.callback(service.close)
        yield Peers(compiled, general, messenger, service)


@contextmanager
def filled_peers(documents: int, seed: int) -> Iterator[Peers]:
    """Peers with random documents."""
    with peers() as found:
        choice = random.Random(seed)
        found.compiled.apply(*(document(choice, number) for number in range(documents)))
        found.fill_rows()
        yield found


async def _nothing() -> None:
    """A turn of the loop."""


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
        **{name: value() for name, value in _counted(choice).items() if choice.random() < 0.9},
    )


def _counted(choice: random.Random) -> dict[str, Callable[[], object]]:
    """Fields that are counted: few values and many, near each other and far, with what ids leave out."""
    return {
        "shelf": lambda: choice.choice(
            ("a", "b", "c ", "d#1", "e\t", 'f"', "é", "日本", "%s", "", f"s{choice.randrange(90)}")
        ),
        "number": lambda: choice.choice((1, 2, 3, -5, 1 << 40, -(1 << 63), choice.randrange(1 << 50))),
        "level": lambda: choice.randrange(-128, 128, 32),
    }


def text(choice: random.Random, words: int) -> str:
    return " ".join(word(choice) for _ in range(choice.randint(1, words)))


def quoted(choice: random.Random) -> str:
    """A text some of whose words are to stand next to each other."""
    parts = [text(choice, 3) if choice.random() < 0.5 else f'"{text(choice, 4)}"' for _ in range(choice.randint(1, 3))]
    return choice.choice((" ", " ", " ", "  ", "")).join(parts)


def word(choice: random.Random) -> str:
    return choice.choice((*WORDS, f"w{int(choice.paretovariate(0.6)) % 500}"))


INDEXES = ("body", "title", "parts", "default", "label", "mixed", "name")
PROFILES = (
    "body",
    "both",
    "tuned",
    "parts",
    "weighed",
    "dropping",
    "again",
    "native",
    "few",
    "matching",
    "expressed",
    "greatest",
)
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
    "presentation.summary": ("short", "bold", "columns", "columns"),
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
        + " and ".join(["userQuery()", *filters])
        + ordered(choice),
        "query": choice.choice((text(choice, 5),) * 6 + (quoted(choice), quoted(choice), odd, odd)),
        "type": choice.choice(("any", "all", "phrase", "weakAnd", "weakAnd", "web")),
        "ranking": ranking,
        "default-index": index,
        "nocache": choice.choice(("true", "false")),
    }
    return parts | {name: choice.choice(values) for name, values in MORE.items() if choice.random() < 0.08}


def with_input(choice: random.Random, parameters: dict[str, object]) -> dict[str, object]:
    """The same query with the user's text in a parameter that the statement names, read as that says."""
    notes: dict[str, str] = {}
    if choice.random() < 0.8:
        notes["defaultIndex"] = f"'{parameters.get('default-index', 'body')}'"
    if choice.random() < 0.7:
        notes["grammar"] = f"'{choice.choice((parameters['type'], 'raw', 'all'))}'"
    more = {"targetHits": "7", "language": "'de'", "allowEmpty": "true", "ranked": "false", "nfkc": "true"}
    more |= {"'grammar.composite'": "'or'", "distance": "3", "weight": "200"}
    notes |= {name: value for name, value in more.items() if choice.random() < 0.05}
    said = ", ".join(f"{name}: {value}" for name, value in notes.items())
    text, name = parameters["query"], "query" if choice.random() < 0.1 else "words"
    input_ = f"({{{said}}}userInput(@{name}))" if notes else f"userInput(@{name})"
    others = {key: value for key, value in parameters.items() if key not in ("query", "default-index")}
    yql = str(parameters["yql"]).replace("userQuery()", input_)
    if choice.random() < 0.05:
        yql = yql.replace(input_, f"{input_} and body contains @{name}")
    return others | {"yql": yql, name: text}


def ordered(choice: random.Random) -> str:
    """The end of a statement, which may say the order of hits."""
    return f" {choice.choice(ORDERS)}" if choice.random() < 0.1 else ""


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
    fields = choice.choice(("*", "*", "*", "title, year", "year, name"))
    parts: dict[str, object] = {
        "yql": f"select {fields} from music where {whole}{ordered(choice)}",
        "ranking": ranking if choice.random() < 0.8 else choice.choice(PROFILES),
        "nocache": choice.choice(("true", "false")),
    }
    return parts | {name: choice.choice(values) for name, values in MORE.items() if choice.random() < 0.08}


COUNTED = ("year", "name", "shelf", "number", "level", "shelf", "name")
NOT_COUNTED = ("price", "sizes")


def grouping(choice: random.Random) -> str:
    """A statement that counts values; a few ask for more."""
    lists = [_list(choice, number) for number in range(choice.choice((1, 1, 2, 3)))]
    whole = f"all({' '.join(lists)})" if len(lists) > 1 or choice.random() < 0.5 else lists[0]
    return whole if choice.random() < 0.9 else f"{whole} | {_list(choice, 0)}"


def _list(choice: random.Random, number: int) -> str:
    asks_more = choice.random() < 0.06
    name = choice.choice(NOT_COUNTED if asks_more and choice.random() < 0.4 else COUNTED)
    orders = ("order(-max(year))",) if asks_more else ("order(-count())", "order(-count())", "order(count())", "")
    most = choice.choice(("", f"max({choice.choice((1, 2, 5, 20, 1000))})", "max(7)"))
    precision = f"precision({choice.choice((1, 3, 30, 1000))})" if most and choice.random() < 0.3 else ""
    outputs = choice.choice(("count()", "count()", "count() as(n)", "count() as(a), count() as(b)"))
    label = f" as(list{number})" if number or choice.random() < 0.3 else ""
    return f"all(group({name}) {most} {precision} {choice.choice(orders)} each(output({outputs})){label})"


def at_once(shared: Peers, asked: Sequence[dict[str, str]]) -> list[Response]:
    handler = shared.compiled.handler

    async def ask_all() -> list[Response]:
        requests = [Request("GET", "/search/", urlencode({"timeout": "60s"} | each)) for each in asked]
        return await asyncio.gather(*(handler.handle(request) for request in requests))

    return shared.compiled._loop.run_until_complete(ask_all())
