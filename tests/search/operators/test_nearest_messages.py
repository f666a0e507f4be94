"""What is wrong with a nearestNeighbor: the words are those of Vespa's ValidateNearestNeighborSearcher."""

from __future__ import annotations

import math

import pytest

from paperwasp.errors import IllegalQuery
from paperwasp.search.operators.nearest_neighbor import NearestNeighborItem
from tests.search.operators.test_attribute_search import found, mixed, space_with, tensor, thing


@pytest.mark.parametrize(
    ("field", "given_input", "message"),
    [
        ("euclidean", None, "requires a tensor rank feature named 'query(q)' but this is not present"),
        (
            "euclidean",
            3.0,
            "requires a tensor rank feature named 'query(q)' but this is not present: it is the number '3.0', since no "
            "rank profile declares its type",
        ),
        (
            "euclidean",
            tensor("tensor(x[3])", 1, 2, 3),
            "field type tensor<float>(x[2]) does not match query type tensor(x[3])",
        ),
        (
            "euclidean",
            tensor("tensor(y[2])", 1, 2),
            "field type tensor<float>(x[2]) does not match query type tensor(y[2])",
        ),
        (
            "many",
            mixed(a=(1, 2)),
            "field type tensor<float>(c{},x[2]) does not match query type tensor<float>(c{},x[2])",
        ),
        (
            "sparse",
            tensor("tensor(x[2])", 1, 2),
            "field type tensor<float>(c{}) is not supported by nearest neighbor searcher",
        ),
        ("int", tensor("tensor(x[2])", 1, 2), "field is not a tensor"),
        ("title", tensor("tensor(x[2])", 1, 2), "field is not an attribute"),
        ("shown", tensor("tensor<float>(x[2])", 1, 2), "field is not an attribute"),
        ("euclidean", tensor("tensor(x[2])", 1, math.nan), "'query(q)' has a cell that is not a finite number"),
        ("angular", tensor("tensor(x[2])", -math.inf, 1), "'query(q)' has a cell that is not a finite number"),
    ],
)
def test_vectors_that_cannot_be_compared(field: str, given_input: object, message: str) -> None:
    inputs = {} if given_input is None else {"q": given_input}
    item = NearestNeighborItem(
        field, "q", 1, explore_additional_hits=7, distance_threshold=2.5, tuning=(("hnsw.explorationSlack", 0.5),)
    )
    with space_with(thing(0), inputs=inputs) as space, pytest.raises(IllegalQuery) as raised:
        found(item, space)
    assert raised.value.message == (
        f"NEAREST_NEIGHBOR {{field={field},queryTensorName=q,hnsw.exploreAdditionalHits=7,distanceThreshold=2.5,"
        f"approximate=true,targetHits=1,hnsw.explorationSlack=0.5}} {message}"
    )
