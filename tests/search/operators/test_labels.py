"""labeled: https://docs.vespa.ai/en/ranking/multivalue-query-operators.html#raw-scores-and-query-item-labeling"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paperwasp.core import _core
from paperwasp.document.operations import Put
from paperwasp.schema import parse_schemas
from paperwasp.search.bind import space_of
from paperwasp.search.operators.boolean import AndItem, OrItem
from paperwasp.search.operators.item import Item, plan
from paperwasp.search.operators.labeled import LabeledItem
from paperwasp.search.operators.word import WordItem
from tests.content.nodes import doc_id, started

SCHEMA = """
schema thing { document thing {
    field title type string { indexing: index }
    field kind type string { indexing: attribute }
} }
"""
THINGS = ({"title": "red cat", "kind": "a"}, {"title": "red dog"}, {"title": "green dog", "kind": "a"})


def test_a_labeled_condition_matches_as_without_and_scores_where_it_does(tmp_path: Path) -> None:
    schemas = dict(parse_schemas({"schemas/thing.sd": SCHEMA}).schemas)
    with started(tmp_path, schemas) as node:
        node.apply(*(Put(doc_id(number, "thing"), fields) for number, fields in enumerate(THINGS)))
        space = space_of(node.node.reader.view(), "thing")
        red = LabeledItem((WordItem("title", "red"),), "colour", 0.5)
        either = LabeledItem((OrItem((WordItem("title", "green"), WordItem("kind", "a"))),), "other", 2.0)

        def lids(item: Item) -> list[int]:
            found: list[int] = _core.bitmap_lids(plan(item, space).bitmap() & space.accept, space.limit).tolist()
            return found

        lid = [lids(AndItem(tuple(WordItem("title", word) for word in thing["title"].split())))[0] for thing in THINGS]
        assert lids(AndItem((red, WordItem("kind", "a")))) == [lid[0]]
        assert lids(OrItem((red, either))) == sorted(lid)

        terms = list(plan(OrItem((red, either)), space).terms())
        assert [term.annotations.label for term in terms] == [None, "colour", None, None, "other"]
        (colour,), (other,) = terms[1].matches, terms[4].matches
        scores = [colour.raw_scores(np.array([each], np.uint32))[0] for each in lid]
        assert scores == [0.5, 0.5, 0]
        assert [other.raw_scores(np.array([each], np.uint32))[0] for each in lid] == [2, 0, 2]
        assert (colour.frequency(), colour.field) == (2, "")
