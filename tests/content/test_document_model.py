"""Every operation on every type of field, checkpoints, restarts, crashes, other schemas, pruning and reindexing,
against the plain model of `document_model`. A start gives new lids."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from paperwasp import limits
from paperwasp.coordination.messages.documents import ReindexRequest
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Outcome
from tests.content.document_checks import build_graphs, check_columns, check_graphs, check_stored, shown_of, stored_of
from tests.content.document_model import Fields, random_deed, shown, with_made
from tests.content.document_schemas import VARIANTS, attributes_of, variant_schema
from tests.content.nodes import reindexed, start

DOCUMENTS = 6


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    """Nothing here loses power, and syncs take most of the time. A start gives new lids early."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(os, "fdatasync", lambda _: None)
        patch.setattr(limits, "DEAD_ROWS_LEAST", 10)
        yield


class DocumentModel(RuleBasedStateMachine):
    """`documents` is what the node should hold; `removed` the tombstones that it should keep."""

    @initialize(variant=st.integers(0, VARIANTS - 1))
    def begin(self, variant: int) -> None:
        self.path = Path(tempfile.mkdtemp())
        self.variant, self.generation = variant, 1
        self.node = start(self.path, {"thing": variant_schema(variant)})
        self.documents: dict[int, Fields | None] = dict.fromkeys(range(DOCUMENTS))
        self.removed: set[int] = set()
        self.times: dict[int, int] = {}
        self.forgotten: dict[int, int] = {}
        """When tombstones that were pruned were left."""

    @rule(seeds=st.lists(st.integers(0, 2**32), max_size=12))
    def apply(self, seeds: list[int]) -> None:
        """A batch. What was changed has a new time, and nothing else has."""
        deeds = [random_deed(random.Random(seed), DOCUMENTS) for seed in seeds]
        attributes = attributes_of(self.variant)
        latest_us = max(self.times.values(), default=0)
        expected, touched = [], set()
        for deed in deeds:
            fields = self.documents[deed.name]
            expected.append(Outcome(fields is not None, deed.refusal(fields)))
            if deed.touches(fields):
                self.documents[deed.name] = deed.after(fields, attributes)
                touched.add(deed.name)
                (self.removed.add if deed.kind == "remove" else self.removed.discard)(deed.name)
        assert self.node.outcomes(*[deed.operation() for deed in deeds]) == expected
        found = self.found_times()
        assert all(found[name] > latest_us for name in touched)
        assert {name: time for name, time in found.items() if name not in touched} == {
            name: time for name, time in self.times.items() if name not in touched
        }
        self.times = found

    @rule(wanted=st.integers(1, 5), place=st.floats(0, 1))
    def prune(self, wanted: int, place: float) -> None:
        """Old tombstones go, and nothing else."""
        times = sorted(self.times.values())
        before_us = times[int(place * (len(times) - 1))] if times else 1
        while self.node.node.prune(before_us, wanted) == wanted:
            pass
        self.forgotten |= {name: self.times[name] for name in self.removed if self.times[name] < before_us}
        self.removed = {name for name in self.removed if self.times[name] >= before_us}
        there = {name for name, fields in self.documents.items() if fields is not None}
        self.times = {name: time for name, time in self.times.items() if name in self.removed | there}

    @rule(variant=st.integers(0, VARIANTS - 1))
    def change_schema(self, variant: int) -> None:
        self.variant, self.generation = variant, self.generation + 1
        self.node.node.configure(self.generation, {"thing": variant_schema(variant)})

    @rule()
    def write_checkpoint(self) -> None:
        self.node.node.checkpoint()

    @rule(ending=st.sampled_from(["close", "crash"]))
    def restart(self, ending: str) -> None:
        (self.node.close if ending == "close" else self.node.crash)()
        self.node = start(self.path, None)
        # Pruning is not logged: what was pruned since the checkpoint may be there again, until it is pruned again.
        found = self.found_times()
        back = {name for name, time in self.forgotten.items() if found.get(name) == time and name not in self.times}
        self.removed |= back
        self.times |= {name: self.forgotten[name] for name in back}

    @rule()
    def reindex(self) -> None:
        """Changes only what is made of documents, and not the time of the last change."""
        reindexed(self.node.node, ReindexRequest("thing"))
        if self.node.node.reader.view().schemas:  # none are configured just after a start
            self.documents = {name: fields and with_made(fields) for name, fields in self.documents.items()}

    @rule()
    def compact(self) -> None:
        """Changes nothing that is seen."""
        self.node.node.compact()
        there = [name for name, fields in self.documents.items() if fields is not None]
        assert self.node.node.reader.view().limit == len(there)

    @rule()
    def build_graphs(self) -> None:
        build_graphs(self.node)

    def found_times(self) -> dict[int, int]:
        view = self.node.node.reader.view()
        found = (document for _, document in view.store.scan(removes=True))
        return {int(DocumentId.parse(document.id).user_specified): view.timestamp_of(document) for document in found}

    @invariant()
    def holds_the_documents(self) -> None:
        if not hasattr(self, "node"):
            return
        assert {name: stored_of(self.node, name) for name in range(DOCUMENTS)} == self.documents
        attributes = attributes_of(self.variant)
        assert {name: shown_of(self.node, name) for name in range(DOCUMENTS)} == {
            name: None if fields is None else shown(fields, attributes) for name, fields in self.documents.items()
        }
        view = self.node.node.reader.view()
        check_columns(view, self.documents)
        check_graphs(view)
        assert check_stored(view, self.documents) == {str(name) for name in self.removed}
        assert self.found_times() == self.times

    def teardown(self) -> None:
        if hasattr(self, "node"):
            self.node.close()
            shutil.rmtree(self.path)


TestDocumentModel = DocumentModel.TestCase
TestDocumentModel.settings = settings(
    max_examples=int(os.environ.get("PAPERWASP_MODEL_EXAMPLES", "6")),
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
