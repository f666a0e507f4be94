"""Messages as bytes: each is again what it was, and no bytes are anything but a message or an UnreadableMessage."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pytest

from paperwasp import errors
from paperwasp.coordination.messages import documents, envelope, queries
from paperwasp.coordination.messages.documents import (
    ApplyChanges,
    ApplyRequest,
    GetRequest,
    StatusResponse,
    VisitedDocument,
    VisitRequest,
    VisitResponse,
)
from paperwasp.coordination.messages.envelope import Codec
from paperwasp.coordination.messages.operations import CONVERSIONS as ABOUT_DOCUMENTS
from paperwasp.coordination.messages.operations import UPDATES
from paperwasp.coordination.messages.trees import Node
from paperwasp.coordination.messages.values import INTEGER, read_extension
from paperwasp.document.converters import GeoPosition
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Outcome, Put, Refusal, Remove, Update
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.updates import FieldUpdate
from paperwasp.errors import InvalidInput, LanguageError, Overload, Position, UnreadableMessage
from paperwasp.limits import messages as limits
from paperwasp.ranking.explanation import NodeValue, PartValue
from paperwasp.ranking.query_expressions import RankExpressions
from paperwasp.schema.teaser_settings import Tags
from paperwasp.search.grouping.request import GroupingRequest
from paperwasp.search.operators.boolean import AndItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.word import WordItem
from paperwasp.search.query import (
    AFTER_ALL,
    Hit,
    HitExplanation,
    Match,
    Order,
    Query,
    QueryDeadline,
    Rank,
    SearchAfter,
    SearchResponse,
    Show,
)
from paperwasp.search.query_messages import CONVERSIONS as ABOUT_QUERIES
from paperwasp.search.query_messages import GROUPINGS, ITEMS
from paperwasp.search.show.values import Objects
from paperwasp.search.text_query import RouteQuery, TextQuery
from paperwasp.search.yql_syntax import Annotations
from tests.chance import SEED
from tests.struct_fields import defaults_of

CODEC = Codec((*ABOUT_DOCUMENTS, *ABOUT_QUERIES))
TENSORS = [
    parse_tensor(text)
    for text in (
        "tensor(x[3]):[1,2,-3.5]",
        "tensor<float>(a{},x[2]):{one:[1,2],two:[3,4]}",
        "tensor<bfloat16>(x[2]):[1,0.5]",
        "tensor<int8>(a{},b{}):{{a:x,b:y}:7,{a:'ä b',b:y}:-128}",
        "tensor(a{}):{}",
        "tensor():{{}:5}",
    )
]
TEXTS = ("", "a", "blue note", "größe", "\U0001f3b7", "\0", "x" * 300, '{"child": 0}')
WHOLE = (0, 1, -1, 127, 2**31, 2**63 - 1, -(2**63), 2**64 - 1)
HUGE = (2**64, -(2**63) - 1, 10**400)
NUMBERS = (0.0, -0.0, 1.5, -1e308, 5e-324, math.inf, -math.inf, math.nan)


class Chance(random.Random):
    """Random values of any declared type."""

    def value(self, depth: int = 2) -> Any:
        """A value that a document may have, or a message."""
        kind = self.randrange(11 if depth else 8)
        match kind:
            case 0 | 1:
                return self.choice((*TEXTS, "half \ud800"))
            case 2:
                return self.choice((*WHOLE, *HUGE))
            case 3:
                return self.choice(NUMBERS)
            case 4:
                return self.choice((True, False))
            case 5:
                return self.randbytes(self.randrange(5))
            case 6:
                return self.choice(TENSORS)
            case 7:
                return GeoPosition(self.randrange(-(10**6), 10**6), 7)
            case 8 | 9:
                return [self.value(depth - 1) for _ in range(self.randrange(4))]
        return {self.choice((*TEXTS, *WHOLE)): self.value(depth - 1) for _ in range(self.randrange(4))}

    def of_type(self, hint: Any, known: list[type], depth: int) -> Any:
        """A value of a declared type; records are of the known classes."""
        origin, arguments = get_origin(hint), get_args(hint)
        if hint in (Any, object):
            return self.value() if hint is Any else self.choice((*TEXTS, *WHOLE, *NUMBERS, True))
        if origin is Literal:
            return self.choice(arguments)
        if origin is not None and origin is not tuple:
            simple = [each for each in arguments if depth > 0 or not self._below(each, known)]
            return self.of_type(self.choice(simple or arguments), known, depth)
        if origin is tuple and arguments[-1] is ...:
            count = self.randrange(4) if depth > 0 or not self._below(arguments[0], known) else 0
            return tuple(self.of_type(arguments[0], known, depth - 1) for _ in range(count))
        if origin is tuple:
            return tuple(self.of_type(each, known, depth) for each in arguments)
        if below := self._below(hint, known):
            return self.record(self.choice(below), known, depth - 1)
        simple_values: dict[Any, Callable[[], Any]] = {
            str: lambda: self.choice(TEXTS),
            int: lambda: self.choice((*WHOLE, *HUGE)),
            float: lambda: self.choice(NUMBERS),
            bool: lambda: self.random() < 0.5,
            bytes: lambda: self.randbytes(3),
            type(None): lambda: None,
            Tensor: lambda: self.choice(TENSORS),
        }
        return simple_values[hint]()

    @staticmethod
    def _below(hint: Any, known: list[type]) -> list[type]:
        return [each for each in known if isinstance(hint, type) and issubclass(each, hint)]

    def record(self, kind: type[msgspec.Struct], known: list[type], depth: int) -> Any:
        """A record of a class, with some of its fields."""
        hints = get_type_hints(kind)
        said = {
            name: self.of_type(hints[name], known, depth)
            for name, default in defaults_of(kind).items()
            if default is msgspec.NODEFAULT or self.random() < 0.6
        }
        return kind(**said)

    def some(self, *choices: Any) -> Any:
        return self.choice(choices)


@pytest.fixture
def chance() -> Chance:
    return Chance(SEED)


def again(value: Any, request: object = None) -> Any:
    """The value at the other end."""
    return CODEC.decode(CODEC.encode(value), request)


def assert_same(left: Any, right: Any) -> None:
    """The same values of the same types; NaN is NaN. Lists and tuples in open values are both lists."""
    if isinstance(left, Tensor):
        assert isinstance(right, Tensor)
        assert (left.type, left.labels) == (right.type, right.labels)
        assert np.array_equal(left.cells, right.cells, equal_nan=True)
    elif isinstance(left, msgspec.Struct):
        assert type(left) is type(right)
        for name in left.__struct_fields__:
            if name not in ("json", "read_as"):
                assert_same(getattr(left, name), getattr(right, name))
    elif isinstance(left, tuple | list):
        assert isinstance(right, tuple | list)
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    elif isinstance(left, dict):
        assert left.keys() == right.keys()
        for key, value in left.items():
            assert_same(value, right[key])
    else:
        assert type(left) is type(right)
        assert repr(left) == repr(right) if isinstance(left, float) else left == right


def classes_of(trees: Any) -> list[type[msgspec.Struct]]:
    """Those that cross: items that stand for a user's text are made others before."""
    found: dict[str, type] = {each.__name__: each for each in trees._classes()}
    made_others = "paperwasp.query_languages."
    return [
        each
        for each in found.values()
        if issubclass(each, msgspec.Struct) and not each.__module__.startswith(made_others)
    ]


@pytest.mark.parametrize(("trees", "base"), [(ITEMS, Item), (GROUPINGS, GroupingRequest), (UPDATES, FieldUpdate)])
def test_trees_of_records(trees: Any, base: type, chance: Chance) -> None:
    known = [each for each in classes_of(trees) if each is not Item]
    tops = [each for each in known if issubclass(each, base)]
    for number in range(600):
        record = chance.record(tops[number % len(tops)], known, 4)
        data = msgspec.msgpack.encode(trees.to_tree(record))
        read = msgspec.msgpack.Decoder(tuple[Node, ...], ext_hook=read_extension).decode(data)
        assert_same(record, trees.from_tree(read))


def a_query(chance: Chance) -> Query:
    items = [each for each in classes_of(ITEMS) if each is not Item]
    tree = chance.record(chance.choice([each for each in items if issubclass(each, Item)]), items, 3)
    inputs = {name: chance.some(1.5, math.nan, "text", chance.choice(TENSORS)) for name in TEXTS[: chance.randrange(4)]}
    keys = tuple((1, 0, chance.some(1, -(2**63), 2**64, math.inf, b"key")) for _ in range(chance.randrange(3)))
    after = chance.some(None, SearchAfter(1.5, keys, b"123456789012"), SearchAfter(-math.inf, (), AFTER_ALL))
    override = queries.RankingOverride(1, -1.5, None, math.inf)
    grouping = chance.record(GroupingRequest, classes_of(GROUPINGS), 3)
    diversity = queries.DiversityOverride("kind", 3, 1.5, "strict")
    return Query(
        Match(
            tree,
            chance.some((), ("music", "books")),
            chance.choice(TEXTS),
            "weakAnd",
            chance.some(queries.MatchPhaseOverride(), queries.MatchPhaseOverride("year", True, 10, 0.5, diversity)),
            chance.some(
                None, queries.Streaming("g"), queries.Streaming(userid=2**63), queries.Streaming("", 0, "true")
            ),
        ),
        Rank(
            "own",
            inputs,
            {"a.b": "c"} if chance.random() < 0.5 else {},
            {"bm25(title)": chance.choice(NUMBERS)},
            chance.some(None, override),
            chance.some(None, 0.5),
            chance.randrange(3),
            chance.some(None, queries.GlobalPage(3, -1.0)),
            chance.some(None, RankExpressions("1 + 1"), RankExpressions(None, "a", "b", "c d")),
        ),
        Order(3, 4, (queries.SortKey("year", True, "uca", "en_US", "primary", "as", "7"),), after),
        Show("small", ("a",), False, True, "long", True, ("kind",), "music", Tags("<b>", "</b>", "…"), Objects(False)),
        queries.Observe(6, 2, queries.Profiling(1, -2, 3)),
        QueryDeadline(chance.some(0, time.monotonic_ns() + 10**9), False, 0.25),
        chance.some((), (grouping,)),
        chance.some(1, 2**40),
    )


def test_queries(chance: Chance) -> None:
    for _ in range(300):
        query = a_query(chance)
        read = again(query)
        left_ns = read.deadline.at_ns - query.deadline.at_ns
        assert left_ns == 0 or (query.deadline.at_ns and 0 <= left_ns < 10**9)
        assert_same((query.match, query.rank, query.order, query.show), (read.match, read.rank, read.order, read.show))
        assert_same((query.observe, query.groupings), (read.observe, read.groupings))
        assert (query.memory_bytes, read.deadline.is_soft, read.deadline.soft_share) == (read.memory_bytes, False, 0.25)


def test_every_part_of_a_query_crosses() -> None:
    """A field that is added to a query has to be added to its message."""
    pairs: tuple[tuple[Any, Any, set[str]], ...] = (
        (Match, queries.MatchPart, set()),
        (Rank, queries.RankPart, set()),
        (Order, queries.OrderPart, set()),
        (Show, queries.ShowPart, set()),
        (SearchAfter, queries.AfterPart, {"lid"}),
        (SearchResponse, queries.Found, {"mutations"}),
    )
    for value, message, left_out in pairs:
        names = set(value.__struct_fields__) - left_out
        assert names == set(message.__struct_fields__) - {"listed"}, value
    assert set(Hit._fields) - {"lid"} == set(queries.FoundHit._fields)
    assert HitExplanation._fields == queries.Explained._fields


def a_hit(chance: Chance) -> Hit:
    numbers = {"bm25(title)": chance.choice(NUMBERS), "attribute(vector)": chance.choice(TENSORS)}
    value = NodeValue(
        chance.some(None, 1.5, "tensor(x[1]):[1]"), 1, (PartValue("a", math.nan, (PartValue("b", 1.0),)),)
    )
    return Hit(
        chance.randbytes(12),
        "music",
        "id:n:music::größe",
        chance.choice(NUMBERS),
        b'{"a":1}',
        chance.some(None, {}, numbers),
        chance.some(None, numbers),
        chance.some(None, numbers),
        False,
        chance.some(None, (), ((0, 1, b"\xff"), (2, 0, 2**70))),
        chance.some(None, {"kind": chance.value()}),
        0,
        chance.some(None, (1.0, math.nan)),
        chance.some(None, HitExplanation(({"phase": {"score": 1.5}},), "note", (value,))),
    )


def test_answers_to_queries(chance: Chance) -> None:
    query = a_query(chance)
    for _ in range(100):
        hits = tuple(a_hit(chance) for _ in range(chance.randrange(4)))
        said = [{"message": "half \ud800", "children": [1, None]}]
        found = SearchResponse(
            2**40, 7, hits, 0.5, chance.some(None, said), frozenset({"timeout"}), 2**62, 3, (b"{}", None), True
        )
        assert_same(found, again(found, query))


def test_operations(chance: Chance) -> None:
    known = classes_of(UPDATES)
    for number in range(300):
        name = DocumentId.parse(("id:n:music::größe", "id:n:music:n=5:1", "id:n:music:g=a b:1")[number % 3])
        changes = tuple(chance.record(FieldUpdate, known, 3) for _ in range(chance.randrange(3)))
        condition = chance.some(None, "", "music.year > 5")
        put = Put(name, {field: chance.value() for field in TEXTS[1:4]}, condition, chance.some(True, False))
        update = Update(name, changes, chance.some(True, False), condition, chance.randrange(2))
        remove = Remove(name, condition, chance.randrange(2))
        for operation in (put, update, remove):
            assert_same(ApplyRequest(operation, 7), again(ApplyRequest(operation, 7)))
        together = ApplyChanges()
        together.add([put, update], [3, 4])
        read = again(together)
        assert_same(together.changes, read.changes)
        assert (read.sizes_bytes, read.size_bytes) == ([3, 4], 7)


def test_what_is_asked_and_answered_about_documents(chance: Chance) -> None:
    name = DocumentId.parse("id:n:music::1")
    values = [
        GetRequest(name),
        GetRequest(name, frozenset({"a", "ä"}), "long-value"),
        VisitRequest(("music",), "true", ("id:n",), b"\0", b"token", 1, 2, frozenset(), "hex", 3, 2, 2**62, 5, True, 6),
        VisitResponse((VisitedDocument("id:n:music::1", None, 5), VisitedDocument("a", b"{}")), None, math.nan),
        StatusResponse(3, 4, {"log": 5}, [{"name": "n", "values": {"last": 1.5}, "dimensions": {}}]),
        Outcome(True),
        *(Outcome(False, refusal) for refusal in Refusal),
        [Outcome(True), Outcome(False, Refusal.EXISTS)],
        2**62,
        *(kind() for kind in (documents.StampRequest, documents.HealthRequest, documents.StatusRequest)),
        documents.HealthResponse("broken"),
        documents.GetResponse(None),
        documents.ReindexRequest("music", b"t", 5),
        documents.ReindexResponse(None, 0.5, 7),
    ]
    for value in values:
        assert_same(value, again(value))


def test_time_is_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(envelope, "monotonic_ns", lambda: 10**9)
    data = CODEC.encode(VisitRequest((), deadline_ns=3 * 10**9))
    monkeypatch.setattr(envelope, "monotonic_ns", lambda: 7 * 10**9)  # the other process has another clock
    assert CODEC.decode(data).deadline_ns == 9 * 10**9
    late = CODEC.encode(VisitRequest((), deadline_ns=10**9))
    assert 0 < CODEC.decode(late).deadline_ns < 7 * 10**9


def test_errors_by_code() -> None:
    known = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.PaperwaspError) and not hasattr(kind, "document_id")
    ]
    for kind in known:
        if kind in (errors.InvalidPackage, errors.MultiFeedError) or issubclass(kind, errors.FeedError):
            continue
        read = again(kind("said"))
        assert (type(read), read.message, str(read)) == (kind, "said", "said")
    language = again(LanguageError("no such field", Position("yql", 1, 5)))
    assert (str(language), language.bare_message) == ("yql, line 1, column 5: no such field", "no such field")
    assert language.position == Position("yql", 1, 5)
    assert type(again(errors.InvalidPackage("bad"))) is InvalidInput
    defect = again(KeyError("x"))
    assert (type(defect), defect.message) == (errors.InternalError, "KeyError: 'x'")
    assert again(Overload("half \ud800")).message == "half \\ud800"
    mixed = again([Outcome(True), Overload("full")])
    assert (mixed[0], type(mixed[1])) == (Outcome(True), Overload)


def test_what_is_of_one_process_does_not_cross() -> None:
    for value in (TextQuery._make(range(7)), RouteQuery._make(range(7)), object()):
        assert not CODEC.carries(value)
        with pytest.raises(InvalidInput, match="cannot go to another process"):
            CODEC.encode(value)
    with pytest.raises(InvalidInput, match="cannot go to another process"):
        CODEC.encode(ApplyRequest(Put(DocumentId.parse("id:n:music::1"), {"a": object()})))


def test_another_version_is_refused() -> None:
    data = CODEC.encode(documents.StampRequest())
    for version in (0, 2, 2**40):
        other = msgspec.msgpack.encode([version, "whatever", {"new": msgspec.msgpack.Ext(99, b"")}, 5])
        with pytest.raises(UnreadableMessage, match=rf"version {version}, where .* knows 1: have all processes"):
            CODEC.decode(other)
    assert CODEC.decode(data) == documents.StampRequest()


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (["no version"], "no message"),
        ([1], "no message"),
        ([1, None, {"kind": "Nothing"}], "Invalid value 'Nothing'"),
        ([1, None, {"kind": "StampRequest", "more": 1}], "unknown field `more`"),
        ([1, math.nan, {"kind": "StampRequest"}], "nan ms left"),
        ([1, None, {"kind": "Get", "id": "no id"}], "Unparseable id"),
        ([1, None, {"kind": "Applied", "existed": True, "refusal": "WHY"}], "unknown refusal 'WHY'"),
        ([1, None, {"kind": "Refused", "code": "Position", "message": ""}], "unknown code 'Position'"),
        ([1, None, {"kind": "ApplyAll", "operations": [], "sizes_bytes": [1]}], "do not all have a size"),
        ([1, None, {"kind": "Search", "match": {"tree": []}}], "0 trees"),
        ([1, None, {"kind": "Search", "match": {"tree": [["os.system", {}, 0]]}}], "unknown kind 'os.system'"),
        (
            [1, None, {"kind": "Search", "match": {"tree": [["WordItem", {"index": 5, "word": "a"}, 0]]}}],
            "5 is no value",
        ),
        ([1, None, {"kind": "Search", "match": {"tree": [["WordItem", {}, 0]]}}], "'WordItem' of a message cannot"),
        ([1, None, {"kind": "Search", "match": {"tree": [["AndItem", {}, 9]]}}], "made of 9 nodes"),
        ([1, None, {"kind": "Search", "match": {"tree": [["AndItem", {"children": [{"child": 0}]}, 0]]}}], "no value"),
        ([1, None, {"kind": "Search", "match": {"tree": [["Annotations", {}, 0]]}}], "no Item"),
        ([1, None, {"kind": "PutDocument", "id": "id:n:m::1", "fields": {}}], "Invalid value 'PutDocument'"),
        ([1, None, {"kind": "Stamp", "stamp": msgspec.msgpack.Ext(9, b"")}], "no message"),
    ],
)
def test_bytes_that_say_nothing(message: object, problem: str) -> None:
    with pytest.raises(UnreadableMessage, match=problem):
        CODEC.decode(msgspec.msgpack.encode(message))


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = [["AndItem", {"children": [{"child": 0}]}, 1]] * limits.TREE_DEPTH + [["TrueItem", {}, 0]]
    with pytest.raises(UnreadableMessage, match="at most 300"):
        CODEC.decode(msgspec.msgpack.encode([1, None, {"kind": "Search", "match": {"tree": deep}}]))
    assert CODEC.decode(msgspec.msgpack.encode([1, None, {"kind": "Search", "match": {"tree": deep[1:]}}]))
    monkeypatch.setattr(limits, "TREE_NODES", 3)
    with pytest.raises(UnreadableMessage, match="at most 3"):
        CODEC.decode(msgspec.msgpack.encode([1, None, {"kind": "Search", "match": {"tree": deep[-4:]}}]))
    data = CODEC.encode(GetRequest(DocumentId.parse("id:n:music::1")))
    monkeypatch.setattr(limits, "MESSAGE_BYTES", len(data) - 1)
    with pytest.raises(UnreadableMessage, match="at most"):
        CODEC.decode(data)
    with pytest.raises(InvalidInput, match="at most"):
        CODEC.encode(GetRequest(DocumentId.parse("id:n:music::1")))
    with pytest.raises(UnreadableMessage):
        CODEC.decode(b"\x91" * 100_000)


def test_integers_of_too_many_digits_do_not_cross() -> None:
    def put(number: int) -> ApplyRequest:
        return ApplyRequest(Put(DocumentId.parse("id:n:music::1"), {"a": number}))

    for largest in (10**limits.INTEGER_DIGITS - 1, 1 - 10 ** (limits.INTEGER_DIGITS - 1)):
        assert_same(put(largest), again(put(largest)))
        with pytest.raises(InvalidInput, match="an integer of 1025 digits; at most 1024"):
            CODEC.encode(put(largest * 10))
    with pytest.raises(UnreadableMessage, match="an integer of 1025 digits; at most 1024"):
        read_extension(INTEGER, memoryview(b"1" * 1025))


def test_the_page_shows_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a message is as bytes changes with its version."""
    page = (Path(__file__).parents[2] / "docs" / "internals" / "formats" / "messages.md").read_text()
    shown = json.loads(page.split("```json\n")[1].split("```")[0])
    monkeypatch.setattr(envelope, "monotonic_ns", lambda: 0)
    words = (WordItem("title", "blue"), WordItem("title", "note", annotations=Annotations(weight=200)))
    query = Query(Match(AndItem(words), ("music",)), order=Order(5), deadline=QueryDeadline(500_000_000))
    assert msgspec.msgpack.decode(CODEC.encode(query)) == shown
    assert shown[0] == envelope.VERSION
    assert f"{limits.TREE_NODES:,} nodes (`TREE_NODES`) and {limits.TREE_DEPTH} levels" in " ".join(page.split())


def hostile(chance: Chance) -> Iterator[bytes]:
    """Messages that were cut, or of which bytes were changed, and bytes of chance."""
    update = chance.record(FieldUpdate, classes_of(UPDATES), 3)
    made = [
        CODEC.encode(value)
        for value in (
            a_query(chance),
            SearchResponse(1, 1, (a_hit(chance),)),
            ApplyRequest(Put(DocumentId.parse("id:n:music::1"), {"a": TENSORS[1], "b": [HUGE[0], GeoPosition(1, 2)]})),
            ApplyRequest(Update(DocumentId.parse("id:n:music::1"), (update,))),
            Overload("full"),
        )
    ]
    for _ in range(4000):
        data = bytearray(chance.choice(made))
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        yield bytes(data[: chance.randrange(len(data))] if chance.random() < 0.2 else data)
        yield b"\x93\x01\xc0" + chance.randbytes(chance.randrange(40))


def test_whatever_the_bytes(chance: Chance) -> None:
    query = a_query(chance)
    for data in hostile(chance):
        try:
            CODEC.decode(data, query)
        except UnreadableMessage:
            continue
