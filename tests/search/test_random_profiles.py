"""Random rank profiles give the same scores and features in memory, in segments after a restart, and streamed.

PAPERWASP_PROFILE_CASES says how many profiles (default: a few dozen), PAPERWASP_SEED which.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from paperwasp.base.records import replace
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Put
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import InvalidQuery
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.schema.model import Schema
from paperwasp.search.operators.equiv import EquivItem
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.near import NearItem
from paperwasp.search.query import Streaming
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.chance import SEED
from tests.content.nodes import TestNode, start
from tests.search.queries import query_of
from tests.search.random_profiles import INPUTS, document, features, profile, query, schema_with

CASES = int(os.environ.get("PAPERWASP_PROFILE_CASES", "24"))
PROFILES, QUERIES = 12, 10
"""Of each round: profiles of one schema, and queries of each profile."""
MODES = ("memory", "segments", "streaming")


@pytest.mark.parametrize("round_", range(max(1, CASES // PROFILES)))
def test_the_same_scores_wherever_documents_are(round_: int, tmp_path: Path) -> None:
    draw = random.Random(f"{SEED}/{round_}")
    names, numbers = features(draw, 60)
    assert len(numbers) > 20
    schema = schema_with([profile(draw, f"p{number}", names, numbers) for number in range(PROFILES)])
    puts = [
        Put(DocumentId.parse(f"id:n:s:g=all:{number}"), read_fields(schema.document, document(draw)))
        for number in range(draw.randint(1, 40))
    ]
    with ExitStack() as stack:
        nodes = {mode: stack.enter_context(closing(started(tmp_path / mode, schema, puts, mode))) for mode in MODES}
        profiles = {mode: ServedSchemas() for mode in MODES}
        for number in range(PROFILES):
            for _ in range(QUERIES):
                where = query(draw)
                found = {mode: asked(nodes[mode], f"p{number}", where, profiles[mode], mode) for mode in MODES}
                message = f"PAPERWASP_SEED={SEED}, round {round_}, p{number}, {where}"
                for mode in MODES[1:]:
                    compare(found["memory"], found[mode], f"{message}, {mode}")


def started(path: Path, schema: Schema, puts: list[Put], mode: str) -> TestNode:
    modes = {"s": "streaming"} if mode == "streaming" else {}
    path.mkdir()
    node = start(path, None)
    node.node.configure(1, {"s": schema}, modes, 0)
    for first in range(0, len(puts), 7):
        assert set(node.apply(*puts[first : first + 7])) == {False}
    if mode != "segments":
        return node
    node.node.checkpoint()
    node.close()
    node = start(path, None)
    node.node.configure(1, {"s": schema}, modes, 0)
    return node


Found = Mapping[str, tuple[float, Mapping[str, float | Tensor]]]


def asked(node: TestNode, name: str, where: str, profiles: ServedSchemas, mode: str) -> Found:
    """Document → its relevance and match features; or what is wrong with the query."""
    request = query_of(
        counted(parse_yql(f"select * from s where {where}").tree),
        ("s",),
        name,
        hits=100,
        inputs={key: parse_tensor(text) for key, text in INPUTS.items()},
        rank_properties={"dotProduct.v": "{a:1,b:2}"},
        now_seconds=10**9,
        streaming=Streaming(group="all") if mode == "streaming" else None,
    )
    try:
        hits = search(node.node.reader.view(), request, profiles).hits
    except InvalidQuery as error:
        return {error.message: (0.0, {})}
    return {hit.document_id: (hit.relevance, hit.match_features or {}) for hit in hits}


def counted(item: Item) -> Item:
    """The tree with document frequencies, which streaming search does not count."""
    if isinstance(item, TermItem | EquivItem):
        return replace(item, annotations=replace(item.annotations, document_frequency=(3, 10)))
    if isinstance(item, NearItem):
        return replace(item, children=tuple(map(counted, item.children)))
    children = item.children_of()
    return item.with_children(tuple(map(counted, children))) if children else item


def compare(one: Found, other: Found, message: str) -> None:
    assert one.keys() == other.keys(), message
    for document_id, (relevance, shown) in one.items():
        also, shown_also = other[document_id]
        for name, value in shown.items():
            assert is_same(value, shown_also[name]), f"{message}, {document_id}, {name}: {value}, {shown_also[name]}"
        assert is_same(relevance, also), f"{message}, {document_id}: {relevance}, {also}"


def is_same(one: float | Tensor, other: float | Tensor) -> bool:
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        return str(one) == str(other) or one == other
    return one == other or math.isclose(one, other, rel_tol=1e-9) or (math.isnan(one) and math.isnan(other))
