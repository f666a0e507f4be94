"""Random operations, checkpoints, restarts and crashes against a dict of documents."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
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
            self.documents[name] = shown(dict(operation.fields))
        elif isinstance(operation, Update):
            if existed or operation.create:
                self.documents[name] = shown(self.documents.get(name, {}) | assigned(operation))
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
        found = {name: self.node.get(name) for name in range(6)}
        assert found == {name: as_json(self.documents.get(name)) for name in range(6)}
        view = self.node.node.reader.view()
        live = np.flatnonzero(np.unpackbits(view.live.view(np.uint8), bitorder="little")).astype(np.uint32)
        assert view.live_count == view.live_counts["music"] == len(live) == len(self.documents)
        by_gid = {doc_id(name).gid: fields for name, fields in self.documents.items()}
        documents = [by_gid[view.gid(int(lid))] for lid in live]
        check_rows(view)
        for field in MUSIC_FIELDS:
            if field.attribute:
                missing = False if field.type == BOOL else None
                values = view.columns["music", field.name].gather(live)
                assert values == [fields.get(field.name, missing) for fields in documents]

    def teardown(self) -> None:
        if hasattr(self, "node"):
            self.node.close()
            shutil.rmtree(self.path)


def shown(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None and value != "" and value != []}


def as_json(fields: dict[str, Any] | None) -> dict[str, Any] | None:
    """Floats as document JSON shows them: the shortest text of 32 bits."""
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
