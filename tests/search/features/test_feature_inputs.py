"""What queries bring for rank features: vectors and paths as text, tensors; and fields that are imported."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from paperwasp import limits
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Put
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.errors import InvalidInput, InvalidQuery
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.schema import parse_schemas
from paperwasp.search.features.distance import _path
from paperwasp.search.features.dot_product import array_vector, weight_vector
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.chance import SEED
from tests.content.nodes import TestNode, start
from tests.search.queries import query_of

FEATURES = """closeness(field,v) distance(field,v) closest(v) distance(place) distance(place).index
    distanceToPath(place) dotProduct(w,u) dotProduct(sizes,u) euclideanDistance(sizes,u) attributeMatch(w)
    attributeMatch(w).fieldCompleteness nativeDotProduct(w) rawScore(w)"""
PARENT = f"""
schema shop {{
  document shop {{
    field v type tensor<float>(p{{}},x[2]) {{ indexing: attribute }}
    field place type array<position> {{ indexing: attribute }}
    field w type weightedset<string> {{ indexing: attribute }}
    field sizes type array<int> {{ indexing: attribute }}
    field n type int {{ indexing: attribute }}
  }}
  rank-profile p {{ match-features {{ {FEATURES} }} }}
}}
"""
CHILD = f"""
schema item {{
  document item {{
    field shop type reference<shop> {{ indexing: attribute }}
    field m type int {{ indexing: attribute }}
  }}
  import field shop.v as v {{}}
  import field shop.place as place {{}}
  import field shop.w as w {{}}
  import field shop.sizes as sizes {{}}
  rank-profile p {{ match-features {{ {FEATURES} }} }}
}}
"""
SCHEMAS = dict(parse_schemas({"schemas/shop.sd": PARENT, "schemas/item.sd": CHILD}).schemas)
SHOPS: tuple[dict[str, object], ...] = (
    {"n": 1, "v": {"a": [3, 4], "b": [0, 9]}, "place": [{"lat": 1.0, "lng": 0.0}, {"lat": 0.0, "lng": 0.5}],
     "w": {"x": 2, "y": 3}, "sizes": [1, 2]},
    {"n": 2, "v": {"c": [0, 1]}, "w": {"y": -1}},
    {"n": 3},
)  # fmt: skip


@pytest.fixture
def node(tmp_path: Path) -> Iterator[TestNode]:
    with closing(start(tmp_path, SCHEMAS)) as node:
        shops = [Put(DocumentId.parse(f"id:n:shop::{n}"), read_fields(SCHEMAS["shop"].document, fields))
                 for n, fields in enumerate(SHOPS, 1)]  # fmt: skip
        items = [Put(DocumentId.parse(f"id:n:item::{n}"), {"shop": f"id:n:shop::{n}", "m": n}) for n in (3, 1, 2, 9)]
        assert set(node.apply(*shops, *items)) == {False}
        yield node


def asked(node: TestNode, kind: str, where: str, **properties: str) -> dict[str, dict[str, object]]:
    """By the number of the shop: what match-features say."""
    inputs = {"q": parse_tensor("tensor(x[2]):[0,0]"), "r": parse_tensor("tensor(k{}):{x:1}")}
    given = {name.replace("_", "."): value for name, value in properties.items()}
    tree = parse_yql(f"select * from {kind} where {where}").tree
    request = query_of(tree, (kind,), "p", inputs=inputs, rank_properties=given)
    hits = search(node.node.reader.view(), request, ServedSchemas()).hits
    return {hit.document_id.rsplit(":", 1)[1]: dict(hit.match_features or {}) for hit in hits}


ALL_OF_IT = (
    'rank({0} > 0, {{targetHits: 9}}nearestNeighbor(v, q), geoLocation(place, 0.0, 0.0, "1 km"), w contains "y",'
    ' dotProduct(w, {{"x": 5}}))'
)
VECTORS = {"distanceToPath(place)_path": "(0,0,1000000,0)", "euclideanDistance_u": "[0 0]"}


def test_imported_fields_have_the_values_of_the_parents(node: TestNode) -> None:
    shops = asked(node, "shop", ALL_OF_IT.format("n"), dotProduct_u="{0:1,1:2}", **VECTORS)
    items = asked(node, "item", ALL_OF_IT.format("m"), dotProduct_u="{0:1,1:2}", **VECTORS)
    assert len(shops) == 3
    for name, shop in shops.items():
        assert items[name] == shop
    assert (shops["1"]["distance(field,v)"], shops["2"]["closeness(field,v)"]) == (5, 0.5)
    assert items["1"]["dotProduct(sizes,u)"] == 5
    without = items["9"]
    assert without["distance(field,v)"] == 1.7976931348623157e308
    assert (without["closeness(field,v)"], without["dotProduct(sizes,u)"], without["rawScore(w)"]) == (0, 0, 0)
    assert without["distance(place).index"] == -1


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"dotProduct_u": "x:1"}, "dotProduct.u: expected a vector such as {a:1,b:2} or [1 2], not 'x:1'"),
        ({"dotProduct_u": "{x}"}, "dotProduct.u: expected ':' between a dimension and its number in 'x'"),
        ({"dotProduct_u": "{x:one}"}, "dotProduct.u: expected an index counted from 0, not 'x'"),
        ({"dotProduct_u": "{x:1}"}, "dotProduct.u: expected an index counted from 0, not 'x'"),
        ({"dotProduct_u": "{0:1.5}"}, "dotProduct.u: expected an integer, not '1.5'"),
        ({"dotProduct_u": "{0:1_0}"}, "dotProduct.u: expected an integer, not '1_0'"),
        ({"dotProduct_u": "{1000000000:1}"}, "dotProduct.u: expected an index counted from 0, not '1000000000'"),
        ({"euclideanDistance_u": "[1 b]"}, "euclideanDistance.u: expected an integer, not 'b'"),
        ({"distanceToPath(place)_path": "(0,0,1,nan)"}, "the points of a path are finite"),
        ({"distanceToPath(place)_path": f"({'0,' * 2 * limits.PATH_POINTS}0,0)"}, "a path of 1001 points; at most"),
        ({"dotProduct_u": f"{{{'x:1,' * limits.QUERY_VECTOR_ITEMS}x:1}}"}, "a vector of 100001 numbers; at most"),
    ],
)
def test_what_is_not_understood_is_an_error(node: TestNode, properties: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidQuery) as raised:
        asked(node, "shop", "n > 0", **properties)
    assert message in str(raised.value)


def test_an_input_of_another_shape_is_an_error() -> None:
    files = {"schemas/s.sd": """schema s { document s { field sizes type array<int> { indexing: attribute } }
        rank-profile p { match-features: dotProduct(sizes,r) } }"""}  # fmt: skip
    schemas = dict(parse_schemas(files).schemas)
    with TemporaryDirectory() as directory, closing(start(Path(directory), schemas)) as node:
        node.apply(Put(DocumentId.parse("id:n:s::1"), {"sizes": [1]}))
        with pytest.raises(InvalidInput, match=r"query\(r\) is a tensor\(k{}\): one indexed dimension is expected"):
            asked(node, "s", "true")


def test_any_text_is_a_vector_or_an_error() -> None:
    chance = random.Random(SEED)
    pieces = [*"{}[]():,.;-+eE_ '\"", "1", "23", "a", "nan", "inf", "1e999", "9" * 500, "é", "\x00", "0x1", "٣"]
    readers = (lambda text: weight_vector("v", text), lambda text: array_vector("v", text, True),
               lambda text: array_vector("v", text, False), lambda text: _path("p", text))  # fmt: skip
    started = time.monotonic()
    for _ in range(3000):
        text = "".join(chance.choice(pieces) for _ in range(chance.randrange(12)))
        text = chance.choice(["{%s}", "[%s]", "(%s)", "%s"]) % text
        for reader in readers:
            try:
                reader(text)
            except InvalidQuery:
                continue
            except Exception as error:
                raise AssertionError(f"seed {SEED}: {text!r}") from error
    assert time.monotonic() - started < 30, f"seed {SEED}"
