"""Maps and weighted sets are shown as objects or as arrays, and arrays that look like theirs with them: tryEmitAsMap,
tryEmitAsWset and emitTopLevel of JsonRenderer.java (container-search)."""

from __future__ import annotations

from typing import Any

import pytest

from paperwasp.document.types import DOUBLE, INT, STRING, DataType, array_of, map_of, struct_of, weighted_set_of
from paperwasp.search.show.values import Objects, shape_of

ENTRY = struct_of("entry", {"key": STRING, "value": INT})
NUMBERED = struct_of("numbered", {"value": STRING, "key": INT, "more": STRING})
WEIGHED = struct_of("weighed", {"item": STRING, "weight": INT})
SHELF = struct_of("shelf", {"name": STRING, "entries": array_of(ENTRY)})


@pytest.mark.parametrize(
    ("data_type", "value", "shown"),
    [
        (array_of(ENTRY), [{"key": "a", "value": 1}, {"value": 2, "key": "b"}], {"a": 1, "b": 2}),
        (array_of(ENTRY), [{"key": "a", "value": 1}, {"key": "b"}], [{"key": "a", "value": 1}, {"key": "b"}]),
        (array_of(ENTRY), [], []),
        (array_of(NUMBERED), [{"key": 7, "value": "a"}], {"7": "a"}),
        (array_of(NUMBERED), [{"key": 7, "value": "a", "more": "b"}], [{"key": 7, "value": "a", "more": "b"}]),
        (array_of(WEIGHED), [{"item": "a", "weight": 3}], {"a": 3}),
        (array_of(WEIGHED), [{"item": "a", "weight": 3}, {"item": "b"}], [{"item": "a", "weight": 3}, {"item": "b"}]),
        (SHELF, {"name": "n", "entries": [{"key": "a", "value": 1}]}, {"name": "n", "entries": {"a": 1}}),
        (array_of(SHELF), [{"entries": [{"key": "a", "value": 1}]}], [{"entries": {"a": 1}}]),
        (map_of(STRING, array_of(ENTRY)), {"x": [{"key": "a", "value": 1}], "y": []}, {"x": {"a": 1}, "y": []}),
    ],
)
def test_arrays_of_pairs_are_shown_as_objects(data_type: DataType, value: Any, shown: Any) -> None:
    shape = shape_of(data_type)
    assert shape is not None
    assert shape(value) == shown


@pytest.mark.parametrize("data_type", [ENTRY, array_of(STRING), map_of(STRING, ENTRY), weighted_set_of(STRING), STRING])
def test_other_types_are_shown_as_they_are(data_type: DataType) -> None:
    assert shape_of(data_type) is None


NO_MAPS, NO_SETS, NEITHER = Objects(maps=False), Objects(weighted_sets=False), Objects(False, False)
COUNTS = map_of(STRING, INT)
NESTED = map_of(STRING, map_of(STRING, weighted_set_of(INT)))


@pytest.mark.parametrize(
    ("objects", "data_type", "value", "shown"),
    [
        (NO_MAPS, map_of(INT, STRING), {"7": "a"}, [{"key": 7, "value": "a"}]),
        (NO_MAPS, map_of(DOUBLE, INT), {"1.5": 1, "NaN": 2}, [{"key": 1.5, "value": 1}, {"key": "NaN", "value": 2}]),
        (NO_MAPS, NESTED, {"a": {"b": {"3": 1}}}, {"a": [{"key": "b", "value": {"3": 1}}]}),
        (NO_SETS, NESTED, {"a": {"b": {"3": 1}}}, {"a": {"b": [{"item": 3, "weight": 1}]}}),
        (NEITHER, NESTED, {"a": {"b": {"3": 1}}}, {"a": [{"key": "b", "value": [{"item": 3, "weight": 1}]}]}),
        (NEITHER, COUNTS, {"a": 1}, {"a": 1}),
        (NO_SETS, weighted_set_of(STRING), {"3": 1}, [{"item": "3", "weight": 1}]),
        (NO_MAPS, struct_of("s", {"m": COUNTS}), {"m": {"a": 1}}, {"m": [{"key": "a", "value": 1}]}),
        (NO_MAPS, array_of(ENTRY), [{"key": "a", "value": 1}], {"a": 1}),
        (NO_MAPS, SHELF, {"entries": [{"key": "a", "value": 1}]}, {"entries": [{"key": "a", "value": 1}]}),
        (NO_MAPS, array_of(NUMBERED), [{"key": 7, "value": "a"}], [{"key": 7, "value": "a"}]),
        (NO_MAPS, array_of(WEIGHED), [{"item": "a", "weight": 3}], {"a": 3}),
        (NO_SETS, array_of(WEIGHED), [{"item": "a", "weight": 3}], [{"item": "a", "weight": 3}]),
    ],
)
def test_requests_may_want_arrays(objects: Objects, data_type: DataType, value: Any, shown: Any) -> None:
    shape = shape_of(data_type, objects)
    assert (value if shape is None else shape(value)) == shown
