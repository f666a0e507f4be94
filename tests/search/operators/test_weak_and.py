"""weakAnd on a node: it finds what its plain twin finds among the documents, and the best are those of an or."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pytest

from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Put, Remove
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.schema import parse_schemas
from paperwasp.search.query import Hit, SearchResponse, SortKey
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.chance import SEED
from tests.content.nodes import TestNode, start
from tests.oracles.weak_and import select_weakly
from tests.search.queries import query_of

SCHEMA = """
schema s {
  document s {
    field n type int { indexing: attribute | summary }
    field title type string { indexing: index
      index: enable-bm25
      stemming: none }
  }
  rank-profile by_number { first-phase { expression: attribute(n) } }
  rank-profile text { first-phase { expression: bm25(title) } }
}
"""
WORDS = "abcdefgh"
DOCUMENTS = 700
Document = tuple[int, list[str]]


@dataclass
class Corpus:
    node: TestNode
    documents: list[Document]
    """Those that were not removed again, in the order of their lids."""

    def ask(self, where: str, profile: str, order: str = "") -> SearchResponse:
        tree = parse_yql(f"select * from s where {where}").tree
        keys = (SortKey(order),) if order else ()
        request = query_of(tree, ("s",), profile, hits=DOCUMENTS, order_by=keys)
        return search(self.node.node.reader.view(), request, ServedSchemas())

    def numbers(self, where: str, profile: str = "by_number", order: str = "") -> set[int]:
        found = self.ask(where, profile, order)
        assert found.total_count == len(found.hits)
        return {number_of(hit) for hit in found.hits}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    chance = random.Random(SEED)
    with closing(start(tmp_path_factory.mktemp("node"), None)) as node:
        schemas = parse_schemas({"schemas/s.sd": SCHEMA}).schemas
        node.node.configure(1, schemas, {}, 0)
        documents, puts = [], []
        for number in range(DOCUMENTS):
            words = [word for at, word in enumerate(WORDS) for _ in range(2) if chance.random() < 0.55**at]
            chance.shuffle(words)
            documents.append((number, words))
            fields = read_fields(schemas["s"].document, {"n": number, "title": " ".join(words)})
            puts.append(Put(DocumentId.parse(f"id:n:s::{number}"), fields))
        node.apply(*puts[:400])
        node.apply(*puts[400:])
        gone = set(chance.sample(range(DOCUMENTS), 60))
        node.apply(*(Remove(DocumentId.parse(f"id:n:s::{number}")) for number in gone))
        found = Corpus(node, [])
        # Hits that score the same come in the order of their lids.
        found.documents += [documents[number_of(hit)] for hit in found.ask("true", "unranked").hits]
        assert len(found.documents) == DOCUMENTS - 60
        yield found


def number_of(hit: Hit) -> int:
    return int(str(hit.document_id).rpartition(":")[2])


def word(text: str) -> str:
    return f'title contains "{text}"'


def is_in(text: str, document: Document) -> bool:
    return text in document[1]


def follows(first: str, second: str, document: Document) -> bool:
    words = document[1]
    return any(words[at : at + 2] == [first, second] for at in range(len(words)))


def expected(
    documents: Sequence[Document],
    matches: Sequence[list[bool]],
    frequencies: Sequence[int],
    weights: Sequence[int],
    allowed: list[bool],
    target: int,
) -> set[int]:
    """The numbers of the documents that the twin selects; scores are those of the source, from frequencies."""
    total = len(documents) + 1
    idfs = [math.log(1 + (total - max(n, 1) + 0.5) / (max(n, 1) + 0.5)) for n in frequencies]
    scores = [int(1e6 * weight * idf) + 1 for weight, idf in zip(weights, idfs, strict=True)]
    lids = select_weakly([np.array(each) for each in matches], scores, np.array(allowed), target, 1)
    return {documents[lid][0] for lid in lids}


@pytest.mark.parametrize("round_", range(12))
def test_words_are_selected_as_the_twin_does(corpus: Corpus, round_: int) -> None:
    chance = random.Random(f"{SEED} {round_}")
    documents = corpus.documents
    words = chance.sample(WORDS, chance.randint(2, 6))
    weights = [chance.choice((100, 100, 30, 250)) for _ in words]
    target = chance.choice((1, 5, 20, 100))
    parts = [f"title contains ({{weight: {weight}}}'{text}')" for text, weight in zip(words, weights, strict=True)]
    where = f"({{targetHits: {target}}}weakAnd({', '.join(parts)}))"
    matches = [[is_in(text, document) for document in documents] for text in words]
    frequencies = [sum(each) for each in matches]
    everything = [True] * len(documents)
    asked = (documents, matches, frequencies, weights)
    alone = expected(*asked, everything, target)
    assert corpus.numbers(where) == alone
    # Only documents that the whole query matches make others harder to find.
    below = [number < 450 for number, _ in documents]
    assert corpus.numbers(f"{where} and n < 450") == expected(*asked, below, target)
    without = [not is_in("h", document) for document in documents]
    assert corpus.numbers(f"{where} and !({word('h')})") == expected(*asked, without, target)
    both = [a and b for a, b in zip(below, without, strict=True)]
    assert corpus.numbers(f"{where} and n < 450 and !({word('h')})") == expected(*asked, both, target)
    # What is not ranked is not left out, nor what is excluded.
    any_of = {number for number, found in documents if set(found) & set(words)}
    assert corpus.numbers(where, order="n") == any_of
    assert corpus.numbers(where, order="[relevance]") == alone
    assert corpus.numbers(f"n < 1000 and !({where})") == {number for number, _ in documents} - any_of


def test_parts_of_all_kinds(corpus: Corpus) -> None:
    """A phrase weighs what its rarest word does, a range as the estimate of its documents, an and next to nothing."""
    documents = corpus.documents
    parts = (word("b"), 'title contains phrase("b", "c")', "n > 500", f"({word('c')} and {word('d')})")
    matches = [
        [is_in("b", document) for document in documents],
        [follows("b", "c", document) for document in documents],
        [number > 500 for number, _ in documents],
        [is_in("c", document) and is_in("d", document) for document in documents],
    ]
    rarest = min(sum(is_in(text, document) for document in documents) for text in "bc")
    frequencies = [sum(matches[0]), rarest, len(documents), 1]
    for target in (1, 10, 50):
        found = corpus.numbers(f"({{targetHits: {target}}}weakAnd({', '.join(parts)}))")
        everything = [True] * len(documents)
        assert found == expected(documents, matches, frequencies, (100, 100, 100, 0), everything, target)


@pytest.mark.parametrize("round_", range(8))
def test_the_best_by_bm25_are_those_of_an_or(corpus: Corpus, round_: int) -> None:
    """Ranked by bm25 nothing that scores is missed; the count is that of the documents selected."""
    chance = random.Random(f"{SEED} best {round_}")
    words = chance.sample(WORDS, chance.randint(2, 5))
    target = chance.choice((3, 10, 40))
    parts = ", ".join(word(text) for text in words)
    beside = chance.choice(("", " and n < 600", f" and !({word('a')})"))
    weak = f"({{targetHits: {target}}}weakAnd({parts})){beside}"
    whole = corpus.ask(f"({' or '.join(word(text) for text in words)}){beside}", "text")
    found = corpus.ask(weak, "text")
    assert found.total_count == len(corpus.numbers(weak)) == len(found.hits)
    assert found.total_count >= min(target, whole.total_count)
    assert [(hit.document_id, hit.relevance) for hit in found.hits] == [
        (hit.document_id, hit.relevance) for hit in whole.hits[: found.total_count]
    ]


def test_what_only_ranks_sees_all_words(corpus: Corpus) -> None:
    """The parts of rank that only rank leave nothing out: every word of a hit counts."""
    parts = f"{word('a')}, {word('b')}, {word('c')}"
    ranks = f"rank(n < 300, ({{targetHits: 1}}weakAnd({parts})))"
    plain = f"rank(n < 300, {' or '.join(word(text) for text in 'abc')})"
    for asked in ("text", "by_number"):
        found, whole = (corpus.ask(where, asked) for where in (ranks, plain))
        assert [hit.relevance for hit in found.hits] == [hit.relevance for hit in whole.hits]
