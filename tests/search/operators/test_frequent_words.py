"""filter-threshold and weakand: the best hits found without scoring all are those of scoring all."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Put
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.schema import parse_schemas
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.content.nodes import TestNode, start
from tests.search.queries import query_of

SETTINGS = """
  filter-threshold: 0.3
  weakand { stopword-limit: 0.6
    adjust-target: 0.1 }
"""
SCHEMA = f"""
schema s {{
  document s {{
    field n type int {{ indexing: attribute }}
    field title type string {{ indexing: index
      index: enable-bm25
      stemming: none }}
  }}
  rank-profile pruned {{ {SETTINGS}
    first-phase {{ expression: bm25(title) }} }}
  rank-profile whole {{ {SETTINGS}
    first-phase {{ expression: bm25(title) + 0 * attribute(n) }} }}
}}
"""
WORDS = "abcdefghij"
QUERIES = (
    'weakAnd(title contains "a", title contains "b", title contains "c", title contains "h")',
    'weakAnd(title contains "c", title contains "d", title contains "e")',
    'title contains "a" or title contains "b" or title contains "i"',
    'title contains "b" and title contains "d"',
    'weakAnd(title contains "b", title contains "f") and !(title contains "c")',
)


def node_of(path: Path, seed: int) -> TestNode:
    chance = random.Random(seed)
    node = start(path, None)
    schemas = parse_schemas({"schemas/s.sd": SCHEMA}).schemas
    node.node.configure(1, schemas, {}, 0)
    puts = []
    for number in range(400):
        words = [
            word for at, word in enumerate(WORDS) for _ in range(chance.randint(1, 3)) if chance.random() < 0.6**at
        ]
        chance.shuffle(words)
        fields = read_fields(schemas["s"].document, {"n": number, "title": " ".join(words)})
        puts.append(Put(DocumentId.parse(f"id:n:s::{number}"), fields))
    node.apply(*puts)
    return node


@pytest.mark.parametrize("seed", range(3))
def test_pruned_hits_are_those_of_scoring_all(tmp_path: Path, seed: int) -> None:
    profiles = ServedSchemas()
    with closing(node_of(tmp_path, seed)) as node:
        for where in QUERIES:
            tree = parse_yql(f"select * from s where {where}").tree
            pruned, whole = (
                search(node.node.reader.view(), query_of(tree, ("s",), profile, hits=20), profiles)
                for profile in ("pruned", "whole")
            )
            assert pruned.total_count == whole.total_count, (seed, where)
            assert [(hit.document_id, hit.relevance) for hit in pruned.hits] == [
                (hit.document_id, hit.relevance) for hit in whole.hits
            ], (seed, where)


def test_the_settings_leave_hits_out(tmp_path: Path) -> None:
    with closing(node_of(tmp_path, 0)) as node:
        tree = parse_yql(f"select * from s where {QUERIES[0]}").tree
        totals = [
            search(node.node.reader.view(), query_of(tree, ("s",), name), ServedSchemas()).total_count
            for name in ("pruned", "default")
        ]
    assert 0 < totals[0] < totals[1]
