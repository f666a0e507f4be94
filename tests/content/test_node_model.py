"""Random operations, checkpoints, restarts and crashes against a dict of documents."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from paperwasp.document.operations import Operation, Put, Update
from paperwasp.document.types import BOOL, DOUBLE, FLOAT, STRING, ArrayType, DataType, NumericType
from tests.content.nodes import IN_PLACE, MUSIC_FIELDS, assigned, doc_id, put, remove, start, update
from tests.content.row_checks import check_rows, fill_rows

NAMES = st.integers(0, 5)


def values_of(data_type: DataType) -> st.SearchStrategy[Any]:
    if isinstance(data_type, ArrayType):
        return st.lists(values_of(data_type.element), max_size=3)
    if data_type == BOOL:
        return st.booleans()
    if data_type == STRING:
        return st.sampled_from(["", "one", "two words", "Ünï"])
    if data_type in (FLOAT, DOUBLE):
        return st.sampled_from([0.0, -1.5, 2.0**20, float(np.float32(0.1))])
    assert isinstance(data_type, NumericType)
    return st.integers((data_type.low or 0) + 1, data_type.high or 0)


TYPES = {field.name: field.type for field in MUSIC_FIELDS}
DOCUMENTS = st.fixed_dictionaries({}, optional={name: values_of(kind) for name, kind in TYPES.items()})
ASSIGNED = st.fixed_dictionaries({}, optional={n: st.one_of(st.none(), values_of(k)) for n, k in TYPES.items()})
IN_PLACE_ONLY = ASSIGNED.map(lambda fields: {name: value for name, value in fields.items() if name in IN_PLACE})
OPERATIONS = st.one_of(
    st.builds(lambda name, fields: put(name, **fields), NAMES, DOCUMENTS),
    st.builds(lambda name, create, fields: update(name, create=create, **fields), NAMES, st.booleans(), ASSIGNED),
    st.builds(lambda name, fields: update(name, **fields), NAMES, IN_PLACE_ONLY),
    st.builds(remove, NAMES),
)


@pytest.fixture(autouse=True, scope="module")
def _without_syncs() -> Iterator[None]:
    """Nothing here loses power, and syncs take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(os, "fdatasync", lambda _: None)
        yield


class NodeModel(RuleBasedStateMachine):
    """`documents` is what the node should hold."""

    @initialize()
    def begin(self) -> None:
        self.path = Path(tempfile.mkdtemp())
        self.node = start(self.path)
        self.documents: dict[int, dict[str, Any]] = {}

    @rule(operations=st.lists(OPERATIONS, max_size=12))
    def apply(self, operations: list[Operation]) -> None:
        expected = [self.step(operation) for operation in operations]
        assert self.node.apply(*operations) == expected

    def step(self, operation: Operation) -> bool:
        name = int(operation.id.user_specified)
        existed = name in self.documents
        if isinstance(operation, Put):
            self.documents[name] = dict(operation.fields)
        elif isinstance(operation, Update):
            if existed or operation.create:
                changed = self.documents.get(name, {}) | assigned(operation)
                self.documents[name] = {field: value for field, value in changed.items() if value is not None}
        else:
            self.documents.pop(name, None)
        return existed

    @rule()
    def write_checkpoint(self) -> None:
        self.node.node.checkpoint()

    @rule()
    def fill_rows(self) -> None:
        fill_rows(self.node.node)

    @rule()
    def restart(self) -> None:
        self.node.close()
        self.node = start(self.path)

    @rule()
    def crash(self) -> None:
        self.node.crash()
        self.node = start(self.path)

    @invariant()
    def holds_the_documents(self) -> None:
        if not hasattr(self, "node"):
            return
        view = self.node.node.reader.view()
        for name in range(6):
            fields = as_json(self.documents.get(name))
            document, found = view.store.get(doc_id(name).gid), self.node.node.reader.get(doc_id(name))
            assert (document and orjson.loads(view.fields_of(document))) == fields
            assert (found and orjson.loads(found)) == (None if fields is None else shown(fields))
        live = np.flatnonzero(np.unpackbits(view.live.view(np.uint8), bitorder="little")).astype(np.uint32)
        assert view.live_count == view.live_counts["music"] == len(live) == len(self.documents)
        by_gid = {doc_id(name).gid: fields for name, fields in self.documents.items()}
        documents = [by_gid[view.gid(int(lid))] for lid in live]
        check_rows(view)
        for field in MUSIC_FIELDS:
            if field.attribute:
                expected = [column_value(field.type, fields.get(field.name)) for fields in documents]
                assert view.columns["music", field.name].gather(live) == expected

    def teardown(self) -> None:
        if hasattr(self, "node"):
            self.node.close()
            shutil.rmtree(self.path)


def shown(fields: dict[str, Any]) -> dict[str, Any]:
    """What document/v1 shows of JSON: no empty texts and arrays, and an unset bool as false."""
    return {"live": False} | {name: value for name, value in fields.items() if value not in ("", [])}


def column_value(data_type: DataType, value: Any) -> Any:
    """What a column gathers of a value: it keeps empty ones as none, and a bool is never unset."""
    if data_type == BOOL:
        return bool(value)
    return None if value in ("", []) else value


def as_json(fields: dict[str, Any] | None) -> dict[str, Any] | None:
    """Floats as the JSON of documents has them: the shortest text of 32 bits."""
    if fields is None:
        return None
    single = {"score": fields.get("score"), "numbers": fields.get("numbers")}
    texts = {name: shortest(value) for name, value in single.items() if value is not None}
    return fields | texts


def shortest(value: Any) -> Any:
    return [shortest(one) for one in value] if isinstance(value, list) else float(str(np.float32(value)))


TestNodeModel = NodeModel.TestCase
TestNodeModel.settings = settings(
    max_examples=25, stateful_step_count=15, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
