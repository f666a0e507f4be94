"""Queries that have no time left end, wherever they are; and what was made is there for the next."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.core.clock import OutOfTime, check_time, end_work_at
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put
from paperwasp.errors import InvalidQuery, Timeout
from paperwasp.schema import parse_schemas
from paperwasp.search.operators.boolean import AndItem, OrItem
from paperwasp.search.operators.equiv import EquivItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.storage.attributes.dictionary import StringDictionary
from paperwasp.storage.attributes.sort_order import BETWEEN_CLOCKS, order_of
from paperwasp.text.linguistics.collation import Collation
from tests.content.nodes import TestNode, started
from tests.search.queries import query_of

SCHEMA = """schema d { document d {
  field title type string { indexing: index | summary
    summary: dynamic
    index: enable-bm25 }
} }"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    path: Path = tmp_path_factory.mktemp("node")
    with started(path, dict(parse_schemas({"schemas/d.sd": SCHEMA}).schemas)) as node:
        node.apply(*[Put(DocumentId("n", "d", str(n)), {"title": "a a a b " * 50}) for n in range(2000)])
        yield node


def words(count: int) -> tuple[WordItem, ...]:
    return tuple(WordItem("title", "a") for _ in range(count))


@pytest.mark.parametrize(
    "tree",
    [PhraseItem("title", ("a",) * 5000), NearItem(words(5000), 9000), EquivItem(words(5000))],
    ids=["phrase", "near", "equiv"],
)
def test_a_long_query_ends_in_time(node: TestNode, tree: Item) -> None:
    """It works for tens of seconds where nothing ends it; what it leaves behind is a thread without an end."""
    begun = time.monotonic()
    request = query_of(tree, hits=10, deadline_ns=time.monotonic_ns() + 20_000_000)
    with suppress(Timeout):
        assert "timeout" in search(node.node.reader.view(), request, ServedSchemas()).degraded
    assert time.monotonic() - begun < 5
    check_time()


def test_a_deep_query_asks_each_operator_a_few_times(node: TestNode) -> None:
    """Each `and` orders what is below it, which asks all of that: once, not twice as often on each level."""
    tree: Item = WordItem("title", "b")
    for _ in range(95):
        tree = AndItem((WordItem("title", "a"), OrItem((WordItem("title", "b"), tree))))
    assert search(node.node.reader.view(), query_of(tree, hits=0), ServedSchemas()).total_count == 2000


def test_a_query_without_a_deadline_has_all_the_time(node: TestNode) -> None:
    answer = search(node.node.reader.view(), query_of(PhraseItem("title", ("a", "a", "a", "b"))), ServedSchemas())
    assert answer.total_count == 2000 and not answer.degraded


def test_a_text_of_too_many_tokens_is_refused(node: TestNode) -> None:
    tree = WordItem("title", "a-" * (limits.QUERY_ITEMS + 1))
    with pytest.raises(InvalidQuery, match=r"'title' has 10001 tokens; at most 10000"):
        search(node.node.reader.view(), query_of(tree), ServedSchemas())


def test_a_text_of_too_many_characters_is_refused(node: TestNode) -> None:
    """Some become eighteen each, and cutting them holds the interpreter for seconds."""
    tree = WordItem("title", "\ufdfa" * (limits.QUERY_TERM_CHARACTERS + 1))
    with pytest.raises(InvalidQuery, match=r"'title' has 100001 characters; at most 100000"):
        search(node.node.reader.view(), query_of(tree), ServedSchemas())


def test_an_order_goes_on_where_time_was_over() -> None:
    """Keys that were made are kept, and the order is that of making them at once."""
    count = 3 * BETWEEN_CLOCKS + 5
    collation = Collation("uca", "sv")
    dictionary = StringDictionary()
    codes = dictionary.encode([f"s{n * 7919 % count}" for n in range(count)])
    whole = StringDictionary()
    whole.encode([f"s{n * 7919 % count}" for n in range(count)])
    made = 0

    def key_of(text: str) -> bytes:
        nonlocal made
        made += 1
        if made == BETWEEN_CLOCKS + 1:
            end_work_at(1)
        return collation.key_of(text)

    class Slow(Collation, frozen=True):
        key_of = property(lambda self: key_of)

    slow = Slow("uca", "sv")
    try:
        with pytest.raises(OutOfTime):
            order_of(dictionary, slow, codes)
        assert len(dictionary.keys_begun) == 1
    finally:
        end_work_at(0)
    order = order_of(dictionary, slow, codes)
    assert made == len(dictionary) and not dictionary.keys_begun
    assert (order.ranks(codes) == order_of(whole, collation, codes).ranks(codes)).all()
