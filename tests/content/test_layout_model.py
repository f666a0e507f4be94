"""Random layouts, operations, reindexing, checkpoints, restarts and crashes, beside a plain model of documents.

The model of a document is what was stored last, what is seen of it, and how its text was indexed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from paperwasp import limits
from paperwasp.content.checkpoints import compaction
from paperwasp.content.state.bitmaps import lids_of
from paperwasp.content.views.view import View
from paperwasp.coordination.messages.documents import ReindexRequest
from paperwasp.document.converters import TextOfNumber, converter_of
from paperwasp.document.shown import render_of
from paperwasp.document.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    ArrayType,
    DataType,
    NumericType,
    array_of,
    map_of,
    struct_of,
)  # fmt: skip
from paperwasp.schema.model import AttributeSettings, Field, IndexSettings, Match
from paperwasp.search.bind import space_of
from paperwasp.search.operators.item import plan
from paperwasp.search.operators.word import WordItem
from paperwasp.text.linguistics import TextProfile, profile_of
from tests.content.nodes import doc_id, put, reindexed, remove, schema, start, update

KINDS = ("music", "book")
NAMES = tuple(f"f{number}" for number in range(5))
DOCUMENTS = 6
WORDS = ("one", "two", "running", "Run", "Ünï", "unknown")
TEXTS = st.sampled_from(["", "one", "two words running", "Ünï one", "Run"])
PAIR = struct_of("pair", {"a": INT, "b": STRING})
SHORT_PAIR = struct_of("pair", {"a": INT})
TYPES: list[DataType] = [
    INT, INT, LONG, FLOAT, DOUBLE, BOOL, STRING, STRING, STRING, array_of(STRING), array_of(INT), map_of(STRING, INT),
    PAIR, SHORT_PAIR,
]  # fmt: skip
FAMILIES = [STRING, INT, array_of(STRING), array_of(INT)]
MATCHES: list[Match | None] = [None, None, "word"]
INDEXES = st.builds(IndexSettings, stemming=st.sampled_from(["best", "none"]), normalizing=st.booleans())
ATTRIBUTES = st.builds(AttributeSettings, fast_search=st.booleans(), cased=st.booleans())

Fields = dict[str, Any]
PHASES = [Phase.explicit, Phase.reuse, Phase.generate] if os.environ.get("PAPERWASP_NO_SHRINK") else list(Phase)


def values_of(data_type: DataType) -> st.SearchStrategy[Any]:
    if isinstance(data_type, ArrayType):
        return st.lists(values_of(data_type.element), max_size=3)
    if data_type == STRING:
        return TEXTS | st.sampled_from(["5", "true"])
    if data_type == BOOL:
        return st.booleans()
    if data_type in (FLOAT, DOUBLE):
        return st.sampled_from([0.0, -1.5, float(np.float32(0.1)), 7.0])
    if isinstance(data_type, NumericType):
        return st.sampled_from([0, -1, 5, 2**31 - 1, *([2**40] if data_type == LONG else [])])
    if data_type in (PAIR, SHORT_PAIR):
        members = {"a": values_of(INT)} | ({"b": st.sampled_from(["x", "y"])} if data_type == PAIR else {})
        return st.fixed_dictionaries({}, optional=members)
    return st.dictionaries(st.sampled_from(["k", "l"]), values_of(INT), max_size=2)


@st.composite
def fields(draw: st.DrawFn, name: str, given: DataType | None = None) -> Field:
    data_type = given or draw(st.sampled_from(TYPES))
    is_text = data_type in (STRING, array_of(STRING))
    is_simple = isinstance(data_type, NumericType) or data_type == STRING or isinstance(data_type, ArrayType)
    return Field(
        name, data_type,
        index=draw(st.none() | INDEXES) if is_text else None,
        attribute=draw(st.none() | ATTRIBUTES) if is_simple else None,
        match=draw(st.sampled_from(MATCHES)),
        cased=draw(st.booleans()) if is_text else False,
    )  # fmt: skip


@dataclass
class Document:
    """`stored` is JSON; `seen` are typed values; `indexed` says how each indexed field's text became terms (None: a
    crash made that unknown)."""

    stored: Fields
    seen: Fields
    changed: bool = False
    indexed: dict[str, TextProfile] | None = field(default_factory=dict)


class Kind:
    """One document type as it is configured now."""

    def __init__(self, kind_fields: Mapping[str, Field] = {}, mode: str = "index") -> None:
        self.fields = dict(kind_fields)
        self.mode = mode

    def profile(self, name: str) -> TextProfile | None:
        known = self.fields.get(name)
        if self.mode != "index" or known is None or known.index is None:
            return None
        return profile_of(known.index.stemming, known.index.normalizing, known.match, known.cased)

    def is_attribute(self, name: str) -> bool:
        return self.mode == "index" and name in self.fields and self.fields[name].attribute is not None

    @property
    def in_place(self) -> set[str]:
        return {name for name in self.fields if self.is_attribute(name) and self.profile(name) is None}

    def write(self, seen: Fields) -> Document:
        """A document put under this layout."""
        kept = {name: value for name, value in seen.items() if value is not None}
        profiles = {name: profile for name in kept if (profile := self.profile(name)) is not None}
        return Document({name: self.rendered(name, value) for name, value in kept.items()}, kept, False, profiles)

    def rendered(self, name: str, value: Any) -> Any:
        """The JSON of a value."""
        render = render_of(self.fields[name].type)
        return orjson.loads(orjson.dumps(render(value) if render else value, option=orjson.OPT_SERIALIZE_NUMPY))

    def shown(self, seen: Fields) -> Fields:
        """What document/v1 shows: no empty text, array or map, but an empty struct; and an unset attribute of type bool
        as false."""
        there = {name: value for name, value in seen.items() if value not in ("", [], {}) or self.is_struct(name)}
        bools = {name: False for name in self.in_place if self.fields[name].type == BOOL}
        return bools | {name: self.rendered(name, value) for name, value in there.items()}

    def is_struct(self, name: str) -> bool:
        return self.fields[name].type in (PAIR, SHORT_PAIR)

    def read(self, name: str, stored: Any) -> Any:
        data_type = self.fields[name].type
        if data_type == SHORT_PAIR and isinstance(stored, dict):
            stored = {"a": stored["a"]} if "a" in stored else {}
        try:
            try:
                return converter_of(data_type)(stored)
            except TextOfNumber:
                return converter_of(data_type)(with_texts(stored))
        except ValueError:
            return None

    def taken(self, document: Document, before: Kind) -> None:
        """Changes a document that was `before`'s to this layout's."""
        retyped = {n for n in self.fields if n in before.fields and self.fields[n].type != before.fields[n].type}
        if document.changed and (before.in_place - self.in_place or before.in_place & retyped):
            write_back(document, before)
        seen = document.seen
        document.seen = {}
        for name in self.fields:
            if name in before.fields and name not in retyped:
                value = seen.get(name)
            else:
                value = self.read(name, document.stored[name]) if name in document.stored else None
            if value is not None:
                document.seen[name] = value
        if document.indexed is not None:
            there = {name for name in document.indexed if self.profile(name) is not None and name not in retyped}
            document.indexed = {name: profile for name, profile in document.indexed.items() if name in there}


def of_column(value: Any) -> Any:
    """What a column has of a value: an empty one is none to it."""
    return None if value in ("", []) else value


def with_texts(stored: Any) -> Any:
    """JSON with the texts of its numbers in place of the numbers."""
    if isinstance(stored, list):
        return [with_texts(value) for value in stored]
    if isinstance(stored, dict):
        return {key: with_texts(value) for key, value in stored.items()}
    return orjson.dumps(stored).decode() if type(stored) in (int, float) else stored


def write_back(document: Document, kind: Kind) -> None:
    """What columns have replaces what is stored. Where they have nothing, it stays: only a put takes values away."""
    for name in kind.in_place:
        if (value := of_column(document.seen.get(name))) is not None:
            document.stored[name] = kind.rendered(name, value)


@pytest.fixture(autouse=True, scope="module")
def _without_syncs() -> Iterator[None]:
    """Nothing here loses power, and syncs take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        patch.setattr(os, "fdatasync", lambda _: None)
        patch.setattr(limits, "DEAD_ROWS_LEAST", 3)
        yield


class LayoutModel(RuleBasedStateMachine):
    """`kinds` is what is configured, `documents` what there is, by document type and name."""

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.path = Path(tempfile.mkdtemp())
        self.generation = 1
        self.compacted = False
        self.kinds: dict[str, Kind] = {}
        self.documents: dict[tuple[str, int], Document] = {}
        self.node = start(self.path, None)
        self.configure({kind: Kind({name: data.draw(fields(name)) for name in NAMES}) for kind in KINDS})

    # ------------------------------------------------------------------------------------------------- layouts

    def configure(self, kinds: dict[str, Kind]) -> None:
        schemas = {name: schema(name, *kind.fields.values()) for name, kind in kinds.items()}
        modes = {name: kind.mode for name, kind in kinds.items() if kind.mode != "index"}
        self.node.node.configure(self.generation, schemas, modes)
        self.documents = {key: document for key, document in self.documents.items() if key[0] in kinds}
        for (name, _), document in self.documents.items():
            kinds[name].taken(document, self.kinds[name])
        self.kinds = kinds

    @rule(data=st.data(), names=st.sets(st.sampled_from(NAMES), min_size=1, max_size=2), is_there=st.booleans())
    def change_fields(self, data: st.DataObject, names: set[str], is_there: bool) -> None:
        kinds = dict(self.kinds)
        for kind in kinds:
            changed = dict(kinds[kind].fields)
            for name in sorted(names):
                changed.pop(name, None)
                if is_there:
                    changed[name] = data.draw(fields(name))
            kinds[kind] = Kind(changed, kinds[kind].mode)
        self.generation += 1
        self.configure(kinds)

    @rule(data=st.data(), name=st.sampled_from(NAMES), kind=st.sampled_from(KINDS), is_other=st.booleans())
    def change_settings(self, data: st.DataObject, name: str, kind: str, is_other: bool) -> None:
        """Another index or attribute, the type as it is, or array for single and single for array."""
        if kind not in self.kinds or name not in self.kinds[kind].fields:
            return
        known = self.kinds[kind].fields[name]
        other = known.type.element if isinstance(known.type, ArrayType) else array_of(known.type)
        drawn = data.draw(fields(name, other if is_other and known.type in FAMILIES else known.type))
        self.generation += 1
        self.configure(self.kinds | {kind: Kind(self.kinds[kind].fields | {name: drawn}, self.kinds[kind].mode)})

    @rule(data=st.data(), kind=st.sampled_from(KINDS), mode=st.sampled_from(["index", "store-only", "streaming", ""]))
    def change_types(self, data: st.DataObject, kind: str, mode: str) -> None:
        """Another mode, or gone, or there again."""
        kinds = dict(self.kinds)
        known = kinds.pop(kind, None)
        if mode:
            kinds[kind] = Kind(known.fields if known else {n: data.draw(fields(n)) for n in NAMES}, mode)
        self.generation += 1
        self.configure(kinds)

    @rule()
    def configure_again(self) -> None:
        self.generation += 1
        self.configure(dict(self.kinds))

    # ---------------------------------------------------------------------------------------------- operations

    def drawn(self, data: st.DataObject, kind: Kind, names: set[str]) -> Fields:
        return {name: data.draw(values_of(kind.fields[name].type)) for name in sorted(names) if name in kind.fields}

    @rule(data=st.data(), kind=st.sampled_from(KINDS), documents=st.sets(st.integers(0, DOCUMENTS - 1), min_size=1))
    def put(self, data: st.DataObject, kind: str, documents: set[int]) -> None:
        if kind not in self.kinds:
            return
        puts = {name: self.drawn(data, self.kinds[kind], set(NAMES)) for name in sorted(documents)}
        expected = [(kind, name) in self.documents for name in puts]
        assert self.node.apply(*[put(name, kind, **values) for name, values in puts.items()]) == expected
        self.documents |= {(kind, name): self.kinds[kind].write(values) for name, values in puts.items()}

    @rule(
        data=st.data(), kind=st.sampled_from(KINDS), name=st.integers(0, DOCUMENTS - 1),
        is_in_place=st.booleans(), clears=st.booleans(),
    )  # fmt: skip
    def update(self, data: st.DataObject, kind: str, name: int, is_in_place: bool, clears: bool) -> None:
        if kind not in self.kinds:
            return
        layout, document = self.kinds[kind], self.documents.get((kind, name))
        values = self.drawn(data, layout, layout.in_place if is_in_place else set(NAMES[:3]))
        if clears:
            values = dict.fromkeys(values)
        assert self.node.apply(update(name, kind, **values)) == [document is not None]
        if document is None:
            return
        seen = document.seen | values
        if values.keys() <= layout.in_place and all(of_column(value) is not None for value in values.values()):
            document.seen = seen
            document.changed = True
        else:
            self.documents[kind, name] = layout.write(seen)

    @rule(kind=st.sampled_from(KINDS), name=st.integers(0, DOCUMENTS - 1))
    def remove(self, kind: str, name: int) -> None:
        if kind in self.kinds:
            assert self.node.apply(remove(name, kind)) == [(kind, name) in self.documents]
            self.documents.pop((kind, name), None)

    @rule(kind=st.sampled_from(KINDS), chunk=st.integers(1, DOCUMENTS))
    def reindex(self, kind: str, chunk: int) -> None:
        """To the end, in chunks; what was written anew is as if it had been put."""
        if kind not in self.kinds:
            return
        token: bytes | None = b""
        written, progress = 0, -1.0
        while token is not None:
            answer = reindexed(self.node.node, ReindexRequest(kind, token, chunk))
            assert progress < answer.progress <= 1
            token, progress, written = answer.token, answer.progress, written + answer.documents
        assert progress == 1
        there = [key for key in self.documents if key[0] == kind]
        assert written == len(there)
        self.documents |= {key: self.kinds[kind].write(self.documents[key].seen) for key in there}

    # ------------------------------------------------------------------------------------------ ends and starts

    @rule()
    def write_checkpoint(self) -> None:
        self.node.node.checkpoint()
        self.compacted = False

    @rule()
    def restart(self) -> None:
        self.node.close()
        self.compacted = False
        self.start()

    @rule(is_configured=st.booleans())
    def crash(self, is_configured: bool) -> None:
        self.node.crash()
        if self.compacted:  # the rows from before are back, and how they were indexed is not told
            for document in self.documents.values():
                document.indexed = None
        self.compacted = False
        self.start(is_configured)

    def start(self, is_configured: bool = True) -> None:
        real = compaction.compact
        compacted: list[int] = []

        def counted(*given: Any) -> Any:
            compacted.append(1)
            return real(*given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compaction, "compact", counted)
            self.node = start(self.path, None)
        if compacted:
            self.compacted = True
            for (kind, _), document in self.documents.items():
                if document.changed:
                    write_back(document, self.kinds[kind])
                document.changed = False
                document.indexed = self.kinds[kind].write(document.seen).indexed
        if not is_configured:
            assert self.node.node.reader.view().layout.types.keys() == self.kinds.keys()
        self.configure(dict(self.kinds))

    # ----------------------------------------------------------------------------------------------- what holds

    @invariant()
    def has_and_shows_the_documents(self) -> None:
        view = self.node.node.reader.view()
        for kind in KINDS:
            for name in range(DOCUMENTS):
                document = self.documents.get((kind, name))
                found = self.node.node.reader.get(doc_id(name, kind))
                kept = view.store.get(doc_id(name, kind).gid)
                if document is None:
                    assert found is None and kept is None
                    continue
                layout = self.kinds[kind]
                assert kept is not None and found is not None
                rendered = {key: layout.rendered(key, value) for key, value in document.seen.items()}
                assert orjson.loads(view.fields_of(kept)) == rendered
                assert orjson.loads(found) == layout.shown(document.seen)

    @invariant()
    def has_them_in_columns(self) -> None:
        view = self.node.node.reader.view()
        assert view.live_count == len(self.documents)
        wanted = {(kind, name) for kind, layout in self.kinds.items() for name in NAMES if layout.is_attribute(name)}
        assert view.columns.keys() == wanted
        for kind, name in wanted:
            by_lid = self.by_lid(view, kind)
            assert view.live_counts[kind] == len(by_lid)
            column = view.columns[kind, name]
            for lid, document in by_lid.items():
                assert column.get(lid) == of_column(document.seen.get(name))
            numbers = (document.seen.get(name) for document in by_lid.values())
            for value in {number for number in numbers if type(number) is int}:
                found = set(lids_of(column.equal_bitmap(value, view.limit)).tolist()) & by_lid.keys()
                assert found == {lid for lid, one in by_lid.items() if holds(one.seen.get(name), value)}

    @invariant()
    def finds_their_words(self) -> None:
        view = self.node.node.reader.view()
        for kind, layout in self.kinds.items():
            for name in NAMES:
                if (profile := layout.profile(name)) is None:
                    assert not view.index.has((kind, name))
                    continue
                by_lid = self.by_lid(view, kind)
                unknown = {lid for lid, document in by_lid.items() if document.indexed is None}
                for word in WORDS:
                    if len(terms := profile.terms(word)) == 1:
                        found = self.found(view, kind, name, word)
                        expected = {lid for lid, document in by_lid.items() if has_term(document, name, terms[0])}
                        assert found - unknown == expected - unknown, (kind, name, word)

    @precondition(lambda self: len(self.kinds) < len(KINDS))
    @invariant()
    def forgets_types(self) -> None:
        assert self.node.node.reader.view().layout.types.keys() == self.kinds.keys()

    def by_lid(self, view: View, kind: str) -> dict[int, Document]:
        lids = {view.gid(int(lid)): int(lid) for lid in lids_of(view.live)}
        return {lids[doc_id(name, of).gid]: one for (of, name), one in self.documents.items() if of == kind}

    def found(self, view: View, kind: str, name: str, word: str) -> set[int]:
        space = space_of(view, kind)
        return set(lids_of(plan(WordItem(name, word), space).bitmap() & space.accept).tolist())

    def teardown(self) -> None:
        if hasattr(self, "node"):
            self.node.close()
            shutil.rmtree(self.path)


def holds(value: Any, wanted: int) -> bool:
    values = value if isinstance(value, list) else [value]
    return any(one is not None and not isinstance(one, str) and one == wanted for one in values)


def has_term(document: Document, name: str, term: str) -> bool:
    profile = (document.indexed or {}).get(name)
    value = document.seen.get(name)
    if profile is None or value is None:
        return False
    return any(term in profile.terms(text) for text in (value if isinstance(value, list) else [value]))


TestLayoutModel = LayoutModel.TestCase
TestLayoutModel.settings = settings(
    max_examples=int(os.environ.get("PAPERWASP_LAYOUT_EXAMPLES", "40")), stateful_step_count=30, deadline=None,
    suppress_health_check=list(HealthCheck), phases=PHASES,
)  # fmt: skip
