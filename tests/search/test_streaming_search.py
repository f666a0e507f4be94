"""Streaming mode: the documents of one group are searched as if they were indexed.

Authority: https://docs.vespa.ai/en/performance/streaming-search.html; beside the same queries over the same documents
with mode index, and stemming none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import orjson
import pytest

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put, Remove, Update
from paperwasp.document.updates import Assign, FieldUpdate
from paperwasp.errors import IllegalQuery, LanguageError, Timeout
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Schema
from paperwasp.search import served as served_schemas
from paperwasp.search.grouping.request import Aggregation, Expression, GroupingRequest, Level
from paperwasp.search.grouping.result_tree import values_of
from paperwasp.search.operators.boolean import AndItem, NotItem, OrItem, TrueItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.patterns import PrefixItem, SubstringItem, SuffixItem
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.query import SearchAfter, SearchResponse, SortKey, Streaming
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.search.yql_syntax import Annotations
from tests.content.nodes import TestNode, started
from tests.search.queries import query_of

MAIL = """
schema mail {
  document mail {
    field subject type string { indexing: index | summary
      index: enable-bm25
      stemming: none
      bolding: on }
    field size type int { indexing: attribute | summary }
    field labels type array<string> { indexing: attribute | summary }
  }
  fieldset default { fields: subject }
  rank-profile bm25 { first-phase { expression: bm25(subject) }
    match-features: bm25(subject) attribute(size) }
  rank-profile alike inherits bm25 { rank-properties { bm25(subject).averageFieldLength: 3 } }
  rank-profile size { first-phase { expression: attribute(size) }
    second-phase { expression: -attribute(size)
      rerank-count: 2 } }
}
"""
STEMMED = MAIL.replace("      stemming: none\n", "")
NOTE = "schema note { document note { field subject type string { indexing: index | summary } } }"


def schemas(mail: str = MAIL) -> dict[str, Schema]:
    return dict(parse_schemas({"schemas/mail.sd": mail, "schemas/note.sd": NOTE}).schemas)


def mail(name: object, owner: str = "g=ann", **fields: object) -> Put:
    return Put(DocumentId.parse(f"id:n:mail:{owner}:{name}"), fields)


@contextmanager
def node_with(*operations: Put | Remove | Update, mode: str = "streaming", text: str = MAIL) -> Iterator[TestNode]:
    with TemporaryDirectory() as directory, started(Path(directory), schemas(text)) as node:
        node.node.configure(2, schemas(text), {"mail": mode})
        if operations:
            node.apply(*operations)
        yield node


ANN = Streaming(group="ann")


def ask(node: TestNode, tree: Item, profile: str = "bm25", **parameters: object) -> SearchResponse:
    parameters.setdefault("document_types", ("mail",))
    parameters.setdefault("streaming", ANN)
    request = query_of(tree, rank_profile=profile, **parameters)  # type: ignore[arg-type]
    return search(node.node.reader.view(), request, ServedSchemas())


def names(response: SearchResponse) -> str:
    return "".join(hit.document_id.rsplit(":", 1)[1] for hit in response.hits)


MAILS = (
    mail("a", subject="hello world", size=3),
    mail("b", subject="hello again, hello", size=1, labels=["x", "y"]),
    mail("c", subject="bye", size=2, labels=["y"]),
    mail("d", "g=bob", subject="hello from bob", size=9),
    mail("e", "n=7", subject="hello from seven", size=8),
    mail("f", "", subject="hello from nobody", size=7),
)


def test_whose_documents() -> None:
    with node_with(*MAILS) as node:
        hello = WordItem("default", "hello")
        assert names(ask(node, hello)) == "ba"
        assert names(ask(node, hello, streaming=Streaming(group="bob"))) == "d"
        assert names(ask(node, hello, streaming=Streaming(userid=7))) == "e"
        assert names(ask(node, hello, streaming=Streaming(group="nobody"))) == ""
        assert names(ask(node, hello, streaming=Streaming(group='a"nn\\'))) == ""
        size = (SortKey("size"),)
        assert names(ask(node, hello, streaming=Streaming(selection="mail.size > 5"), order_by=size)) == "fed"
        assert names(ask(node, hello, streaming=Streaming(selection="true"), order_by=size)) == "bafed"
        answer = ask(node, TrueItem())
        assert (answer.total_count, answer.documents, answer.coverage, answer.degraded) == (3, 3, 1.0, frozenset())


def test_one_of_group_user_and_selection_must_be_given() -> None:
    with node_with(*MAILS) as node:
        for streaming in (None, Streaming(), Streaming("ann", 7), Streaming("ann", None, "true")):
            with pytest.raises(IllegalQuery, match=r"requires either streaming\.groupname or streaming\.selection"):
                ask(node, TrueItem(), streaming=streaming)
        with pytest.raises(LanguageError):
            ask(node, TrueItem(), streaming=Streaming(selection="mail.size >"))


def test_all_that_a_hit_has() -> None:
    with node_with(*MAILS) as node:
        (hit,) = ask(node, WordItem("subject", "again"), prefetch=("size",)).hits
        assert orjson.loads(hit.fields) == {"subject": "hello <hi>again</hi>, hello", "size": 1, "labels": ["x", "y"]}
        assert hit.match_features is not None and hit.match_features["attribute(size)"] == 1
        score = hit.match_features["bm25(subject)"]
        assert isinstance(score, float) and hit.relevance == score > 0
        assert hit.attributes == {"size": 1}
        assert hit.document_type == "mail" and hit.document_id == "id:n:mail:g=ann:b"
        assert names(ask(node, TrueItem(), "size")) == "bca", "the second phase ranks all hits"


def test_what_matches() -> None:
    with node_with(*MAILS) as node:
        assert names(ask(node, WordItem("labels", "y"), order_by=(SortKey("size"),))) == "bc"
        assert names(ask(node, RangeItem("size", 2, None), order_by=(SortKey("size", True),))) == "ac"
        assert names(ask(node, PhraseItem("subject", ("again", "hello")))) == "b"
        assert names(ask(node, NotItem((TrueItem(), WordItem("subject", "hello"))))) == "c"
    with node_with(*MAILS, text=STEMMED) as node:
        assert names(ask(node, WordItem("subject", "worlds"))) == "", "streaming search knows no stemming"


def test_changes_show_at_once_and_nothing_is_indexed() -> None:
    with node_with(*MAILS) as node:
        assert not node.node.reader.view().columns
        node.apply(
            Update(MAILS[0].id, (FieldUpdate("size", Assign(50)),)), Remove(MAILS[1].id), mail("g", subject="hello new")
        )
        answer = ask(node, WordItem("default", "hello"), order_by=(SortKey("size", True),))
        assert names(answer) == "ag"
        assert orjson.loads(answer.hits[0].fields)["size"] == 50


def test_profiles_are_compiled_before_the_first_query(monkeypatch: pytest.MonkeyPatch) -> None:
    with node_with(*MAILS) as node:
        view, served = node.node.reader.view(), ServedSchemas()
        served.compile_all(view.schemas, view.modes)
        monkeypatch.delattr(served_schemas, "served_profile")
        request = query_of(TrueItem(), ("mail",), "bm25", streaming=ANN)
        assert search(view, request, served).total_count > 0
        served.compile_all(view.schemas, view.modes)
        assert search(view, request, served).total_count > 0, "what has not changed is not compiled again"


def test_types_of_both_modes_are_merged() -> None:
    with node_with(*MAILS) as node:
        node.apply(Put(DocumentId("n", "note", "z"), {"subject": "hello"}))
        both = {"document_types": ("mail", "note"), "profile": "default"}
        assert sorted(names(ask(node, WordItem("subject", "hello"), **both))) == ["a", "b", "z"]  # type: ignore[arg-type]
        first = names(ask(node, WordItem("subject", "hello"), hits=1, **both))  # type: ignore[arg-type]
        rest = names(ask(node, WordItem("subject", "hello"), hits=2, offset=1, **both))  # type: ignore[arg-type]
        assert sorted(first + rest) == ["a", "b", "z"]


def test_batches_are_merged() -> None:
    """Of 100 documents, seven at a time, as with mode index: sorted, and by scores that hang on no statistics."""
    documents = [mail(n, subject=f"word{n % 3}", size=n * 37 % 100) for n in range(100)]
    with node_with(*documents) as node, patch.object(limits, "STREAMED_DOCUMENTS", 7):
        answer = ask(node, WordItem("subject", "word1"), hits=5, offset=3, order_by=(SortKey("size", True),))
        expected = sorted((n * 37 % 100 for n in range(100) if n % 3 == 1), reverse=True)[3:8]
        assert [orjson.loads(hit.fields)["size"] for hit in answer.hits] == expected
        assert (answer.total_count, answer.documents, answer.coverage) == (33, 100, 1.0)


@pytest.mark.parametrize(
    ("profile", "types", "order"),
    [
        ("bm25", ("mail",), ()),
        ("size", ("mail",), ()),
        ("bm25", ("mail",), (SortKey("size"),)),
        ("bm25", ("mail",), (SortKey("size", descending=True), SortKey("[relevance]"))),
        ("default", (), ()),
    ],
)
def test_pages_follow_each_other_over_batches(profile: str, types: tuple[str, ...], order: tuple[SortKey, ...]) -> None:
    """Beside the whole. `note` is indexed; many hits are equal to others."""
    many = [mail(number, subject="hello" + " x" * (number % 3), size=number % 4) for number in range(23)]
    notes = [Put(DocumentId.parse(f"id:n:note::{number}"), {"subject": "hello"}) for number in range(3)]
    said = {"document_types": types, "order_by": order}
    hello = WordItem("subject", "hello")
    with node_with(*many, *notes) as node, patch.object(limits, "STREAMED_DOCUMENTS", 5):
        whole = [hit.document_id for hit in ask(node, hello, profile, hits=100, **said).hits]
        found, after = [], None
        while hits := ask(node, hello, profile, hits=4, search_after=after, **said).hits:
            found += [hit.document_id for hit in hits]
            after = SearchAfter(hits[-1].relevance, hits[-1].sort_keys or (), hits[-1].gid)
        assert found == whole
        assert len(whole) == (23 if types else 26)


def test_out_of_time() -> None:
    documents = [mail(n, subject="word", size=n) for n in range(100)]
    with node_with(*documents) as node, patch.object(limits, "STREAMED_BETWEEN_CLOCKS", 10), patch(
        "paperwasp.search.query_resources.QueryClock.is_over", lambda clock: True
    ):  # fmt: skip
        answer = ask(node, WordItem("subject", "word"), "default", hits=400)
        assert answer.degraded == {"timeout"} and 0 < answer.coverage < 1
        assert len(answer.hits) == 9
        with pytest.raises(Timeout):
            ask(node, WordItem("subject", "word"), "default", soft_timeout=False)


def test_random_queries_beside_mode_index() -> None:
    seed = 20264
    random_ = random.Random(seed)
    words = ["red", "green", "blue", "black"]
    documents = [
        mail(n, subject=" ".join(random_.choices(words, k=random_.randint(1, 5))), size=random_.randint(0, 5))
        for n in range(80)
    ]

    alike = Annotations(document_frequency=(20, 80))  # streaming search has no statistics of its own

    def item(depth: int = 2) -> Item:
        kind = random_.randrange(5 if depth else 2)
        if kind == 0:
            return WordItem("subject", random_.choice(words), annotations=alike)
        if kind == 1:
            return RangeItem("size", random_.choice([None, 1, 2]), random_.choice([None, 3, 4]))
        below = tuple(item(depth - 1) for _ in range(2))
        return (AndItem, OrItem, NotItem)[kind - 2](below)

    with node_with(*documents) as streaming, node_with(*documents, mode="index") as index:
        for _ in range(80):
            tree = item()
            order = random_.choice([(), (SortKey("size", True), SortKey("[relevance]", True))])
            found = [ask(node, tree, "alike", order_by=order, hits=100) for node in (streaming, index)]
            scores = [sorted((hit.document_id, round(hit.relevance, 9)) for hit in answer.hits) for answer in found]
            assert scores[0] == scores[1], (seed, tree)
            assert found[0].total_count == found[1].total_count


@pytest.mark.parametrize(
    ("item", "found"),
    [
        (PrefixItem("default", "Hel"), "ab"),
        (PrefixItem("subject", "ell"), ""),
        (SuffixItem("subject", "gain"), "b"),
        (SubstringItem("subject", "ORL"), "a"),
        (SubstringItem("subject", "ello orl"), "a"),
        (SubstringItem("subject", "ello xyz"), ""),
        (PrefixItem("labels", "x"), "b"),
        (OrItem((SuffixItem("subject", "ye"), WordItem("subject", "hel"))), "c"),
    ],
)
def test_words_are_matched_by_their_parts_where_the_query_says_so(item: Item, found: str) -> None:
    with node_with(*MAILS) as node:
        assert "".join(sorted(names(ask(node, item)))) == found


@pytest.mark.parametrize(
    ("match", "word", "phrase"), [("prefix", "abd", "b"), ("substring", "abd", "bd"), ("suffix", "d", "d")]
)
def test_words_are_matched_by_their_parts_where_the_field_says_so(match: str, word: str, phrase: str) -> None:
    text = MAIL.replace("      stemming: none\n", f"      match: {match}\n")
    subjects = {"a": "Ella", "b": "ELLIPSE of", "c": "elf", "d": "well of an ell"}
    with node_with(*(mail(name, subject=subject) for name, subject in subjects.items()), text=text) as node:
        assert "".join(sorted(names(ask(node, WordItem("subject", "éll"))))) == word
        assert "".join(sorted(names(ask(node, PhraseItem("subject", ("ell", "of")))))) == phrase


def test_documents_are_grouped_by_what_users_chose_of_their_ids() -> None:
    """In several batches; an index knows no ids while it groups."""
    expression = Expression("docidnsspecific")
    request = GroupingRequest(0, 1, levels=(Level(2, expression, aggregations=(Aggregation(3, Expression("count")),)),))
    for mode, expected in (("streaming", ["a", "b", "c", "d", "e", "f"]), ("index", [""])):
        with node_with(*MAILS, mode=mode) as node, patch.object(limits, "STREAMED_DOCUMENTS", 4):
            asked = query_of(
                TrueItem(), ("mail",), streaming=Streaming(selection="true") if mode == "streaming" else None
            )
            (found,) = search(node.node.reader.view(), replace(asked, groupings=(request,)), ServedSchemas()).groupings
            assert sorted(values_of(found.levels[1].ids)) == expected
            assert sum(found.levels[1].states[0].shown()) == len(MAILS)
