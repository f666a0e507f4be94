"""Applying operations: the deterministic state machine behind the operation log.

The state is all documents of a content node: by lid in columns and index, by gid in the store. A put gets the next
lid and the earlier lid of its document dies; an update of attributes alone changes their rows in place; every other
update is a put of the changed document, and reindexing one of the document as it is. What has a condition is applied
where the document, as all operations before have left it, meets it; `now()` in it is the time of the entry. Nothing
here asks a clock, the disk, or chance: the outcome comes from the entries and the state.

What a record demands and its document cannot give is refused, by every replica alike: where an entry cannot be read
under the layout, or its updates not be done, nothing is changed and the outcome says so (`Refusal.UNFIT`). An error
while the state is being changed is one of this machine, and is raised.

Columnar: puts of one document type that follow each other are applied together (a run). Plain changes are applied as
they are, without an object for each value; among other puts they become entries as these. One thread, the writer's.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, islice, repeat
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.content.layouts.layout import TypeLayout
from paperwasp.content.layouts.selected import Selected, matcher
from paperwasp.content.log.records import Entry, EntryKind, Logged, entry_of_change, made_by, mutation_of
from paperwasp.content.state.node_state import NodeState
from paperwasp.core import _core
from paperwasp.core._core import PlainChange
from paperwasp.document.apply_updates import Owned, updated_value
from paperwasp.document.operations import Outcome, Refusal, Valued
from paperwasp.document.updates import Assign
from paperwasp.errors import InternalError, InvalidInput
from paperwasp.storage.attributes.numeric import NumericColumn
from paperwasp.storage.documents.document_store import StoredDocument, StoredForm, StoreWrites, stored_value
from paperwasp.storage.documents.gid_map import GID_BYTES, NO_LID

_PUT, _UPDATE, _REINDEX, _MUTATE = EntryKind.PUT, EntryKind.UPDATE, EntryKind.REINDEX, EntryKind.MUTATE
_LOGGER: Final = logging.getLogger(__name__)
_MOST_ROW_BYTES: Final = 2**32 - 1
_LEAST_TOGETHER: Final = 4
"""Fewer updates take less time one by one."""
_EXISTED, _NEW = Outcome(True), Outcome(False)
_REFUSED: Final = {
    Refusal.NOT_MET: Outcome(True, Refusal.NOT_MET),
    Refusal.NO_DOCUMENT: Outcome(False, Refusal.NO_DOCUMENT),
    Refusal.EXISTS: Outcome(True, Refusal.EXISTS),
    Refusal.TOO_LARGE: Outcome(True, Refusal.TOO_LARGE),
    Refusal.UNFIT: Outcome(False, Refusal.UNFIT),
}
UNFIT_ERRORS: Final = (
    InvalidInput,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    struct.error,
)
"""Errors of reading an entry, or of what it makes of a document, as opposed to those of the machine."""

_Row = tuple[int, Logged, Valued, bytes]
"""Of a run: place of the outcome, entry, the whole document's values, and the same as JSON; which a plain change has
itself."""
_Rows = tuple[bytes, NDArray[np.uint64], NDArray[np.uint32], list[tuple[bytes, bytes]]]
"""Global ids behind each other, times, sizes of the JSON, and by global id what the store keeps."""


def apply_entries(state: NodeState, entries: Sequence[Logged]) -> list[Outcome]:
    """Apply entries in order; return the outcome of each."""
    return _Batch(state).apply(list(entries))


def has_unfit(outcomes: Iterable[Outcome]) -> bool:
    """Return whether any operation was refused for good."""
    return any(outcome.refusal is Refusal.UNFIT for outcome in outcomes)


class _Batch:
    """One call of `apply`: the run of puts that is being gathered, and the outcomes."""

    def __init__(self, state: NodeState) -> None:
        self._state = state
        self._outcomes: list[Outcome] = []
        self._writes = StoreWrites()
        self._run: list[_Row] = []
        self._run_gids: set[bytes] = set()
        """The gids of the first rows of the run: see `_gids_of_run`."""
        self._gids_count = 0
        self._run_type = ""
        self._lids: dict[bytes, int] = {}
        """The lids, or NO_LID, of documents that entries ask about: looked up together, and kept up to date."""
        self._prefetched: dict[bytes, StoredDocument | None] = {}
        """Documents that are to be reindexed, as stored before the first entry."""
        self._is_changing = False
        """Whether an error now would leave the state half changed."""

    def apply(self, entries: list[Logged]) -> list[Outcome]:
        self._outcomes = list(repeat(_NEW, len(entries)))
        self._look_up([entry for entry in entries if isinstance(entry, Entry) and _asks(entry)])
        place = 0
        while place < len(entries):
            entry = entries[place]
            if isinstance(entry, PlainChange):
                changes = _core.alike_from(entries, place)
                self._change_all(place, changes)
                place += len(changes)
            else:
                try:
                    self._apply_one(place, entry)
                except UNFIT_ERRORS as error:
                    if self._is_changing:
                        raise
                    _LOGGER.warning("%s is refused, for good: %s: %s", entry.id, type(error).__name__, error)
                    self._outcomes[place] = _REFUSED[Refusal.UNFIT]
                place += 1
        self._finish_run()
        if entries:
            self._state.timestamp_us = max(self._state.timestamp_us, max([entry.timestamp_us for entry in entries]))
        return self._outcomes

    def _apply_one(self, place: int, entry: Entry) -> None:
        if entry.is_refused:
            raise InvalidInput("a later record of the log refuses it")
        if entry.document_type not in self._state.layout.types:
            raise InvalidInput(f"Document type {entry.document_type} does not exist")
        if (entry.create or entry.required_us or entry.condition is not None) and self._is_refused(place, entry):
            return
        if entry.kind is _PUT:
            self._add(place, entry, self._values_of(entry), entry.body)
        elif entry.kind is _UPDATE:
            self._update(place, entry)
        elif entry.kind is _REINDEX:
            self._reindex(place, entry)
        elif entry.kind is _MUTATE:
            self._mutate(entry)
        else:
            self._remove(place, entry)

    def _look_up(self, asking: Sequence[Entry]) -> None:
        """Find at once what one by one takes longer."""
        if not asking:
            return
        gids = [entry.gid for entry in asking]
        self._lids = dict(zip(gids, self._state.gid_map.find(b"".join(gids)).tolist(), strict=True))
        if gids := [entry.gid for entry in asking if entry.kind is _REINDEX]:
            self._prefetched = dict(zip(gids, self._state.store.multi_get(gids), strict=True))

    def _is_refused(self, place: int, entry: Entry) -> bool:
        """Return whether the document is not as the operation demands. `create` alone demands nothing but of puts."""
        if entry.gid in self._gids_of_run():
            self._finish_run()
        lid = self._lids[entry.gid]
        refusal = None
        if lid == NO_LID:
            refusal = None if entry.create else Refusal.NO_DOCUMENT
        elif entry.required_us and int(self._state.timestamps.array[lid]) != entry.required_us:
            refusal = Refusal.NOT_MET
        elif entry.condition is not None:
            is_met = matcher(entry.condition)(self._subject_of(entry, lid), entry.timestamp_us)
            refusal = None if is_met else Refusal.NOT_MET
        elif entry.kind == EntryKind.PUT:
            refusal = Refusal.EXISTS
        if refusal is not None:
            self._outcomes[place] = _REFUSED[refusal]
        return refusal is not None

    def _subject_of(self, entry: Entry, lid: int) -> Selected:
        state, name = self._state, entry.document_type
        kind, codec = state.layout.types[name], state.codecs[name]
        return Selected(entry.id, lid, lambda: self._read_stored(entry, lid).fields, kind, codec, state.columns)

    def _values_of(self, entry: Entry) -> dict[str, Any]:
        if entry.fields is None:
            entry.fields = self._state.codecs[entry.document_type].decode(entry.body)
        return entry.fields

    def _add(self, place: int, entry: Entry, values: Valued, body: bytes) -> None:
        self._begin_run(entry.document_type)
        self._run.append((place, entry, values, body))

    def _begin_run(self, document_type: str) -> None:
        if document_type != self._run_type:
            if self._run:
                self._finish_run()
            self._run_type = document_type

    def _gids_of_run(self) -> set[bytes]:
        """The documents that the run puts: made when somebody asks, since most runs are of puts alone."""
        self._run_gids.update([entry.gid for _, entry, _, _ in islice(self._run, self._gids_count, None)])
        self._gids_count = len(self._run)
        return self._run_gids

    def _change_all(self, place: int, changes: list[PlainChange]) -> None:
        """Apply changes that follow each other and are alike (`core.alike_from`)."""
        document_type = changes[0].document_type
        if not changes[0].is_update:
            self._begin_run(document_type)
            self._run.extend(zip(count(place), changes, changes, repeat(b"")))
            return
        if self._run and not self._gids_of_run().isdisjoint([change.gid for change in changes]):
            self._finish_run()
        kind = self._state.layout.types[document_type]
        done = self._set_numbers(place, changes, kind) if len(changes) >= _LEAST_TOGETHER else 0
        for number, change in enumerate(changes[done:], place + done):
            self._change(number, change)

    def _set_numbers(self, place: int, updates: list[PlainChange], kind: TypeLayout) -> int:
        """Change rows of columns of numbers in place, by one call. Return how many of the updates are done: the one
        after them needs more than that."""
        state = self._state
        columns = {name: state.columns[kind.name, name] for name in updates[0].fields if name in kind.in_place}
        numbers = {name: column for name, column in columns.items() if isinstance(column, NumericColumn)}
        lids = state.gid_map.find(_core.gids_of(updates))
        rows = [(name, column.rows) for name, column in numbers.items()]
        done = _core.set_in_place(updates, lids, rows, state.changed.array, state.timestamps.array)
        found = np.flatnonzero(lids[:done] != NO_LID)
        for column in numbers.values():
            column.note_changes(lids[found])
        for number in found.tolist():
            self._outcomes[place + number] = _EXISTED
        return done

    def _change(self, place: int, change: PlainChange) -> None:
        """Apply one update."""
        gid, document_type = change.gid, change.document_type
        if gid in self._gids_of_run():
            self._finish_run()
        lid = self._lids[gid] = int(self._state.gid_map.find(gid)[0])
        values, kind = change.fields, self._state.layout.types[document_type]
        if lid == NO_LID or not kind.in_place.issuperset(values) or not self._set_in_place(change, lid, values, kind):
            self._update(place, entry_of_change(change))
        else:
            self._outcomes[place] = _EXISTED

    def _update(self, place: int, entry: Entry) -> None:
        state, name = self._state, entry.document_type
        if entry.gid in self._gids_of_run():
            self._finish_run()
        if entry.updates is None:
            entry.updates = state.codecs[name].decode_updates(entry.body)
        lid = self._lids[entry.gid]
        if lid == NO_LID:
            if entry.create:
                self._add_updated(place, entry, state.codecs[name].create(entry.updates))
            return
        self._outcomes[place] = _EXISTED
        in_place = state.layout.types[name].in_place
        if all(update.field in in_place for update in entry.updates) and self._update_in_place(place, entry, lid):
            return
        stored = self._read_stored(entry, lid)
        fields = state.codecs[name].decode(state.fields_of(stored))
        self._add_updated(place, entry, state.codecs[name].update(fields, entry.updates), form=stored.form)

    def _update_in_place(self, place: int, entry: Entry, lid: int) -> bool:
        """Update attributes alone; return whether that could be done: a column cannot tell some values from none."""
        state, name = self._state, entry.document_type
        kind = state.layout.types[name]
        values: dict[str, Any] = {}
        calculated: dict[str, Any] = {}
        owned: Owned = {}
        for update in entry.updates or ():
            field, action = update.field, update.action
            if isinstance(action, Assign) and not update.path:
                values[field] = action.value
            else:
                value = values[field] if field in values else state.columns[name, field].get(lid)
                values[field] = calculated[field] = updated_value(value, update, kind.types[field], True, owned)
        if calculated and not _can_hold(kind, calculated):
            self._outcomes[place] = _REFUSED[Refusal.TOO_LARGE]
            return True
        return self._set_in_place(entry, lid, values, kind)

    def _set_in_place(self, entry: Logged, lid: int, values: Mapping[str, Any], kind: TypeLayout) -> bool:
        """Change a row's values, unless one is what a column keeps as none: then nothing is done."""
        state = self._state
        unset_checks = kind.unset_checks
        if any(unset_checks[field](value) for field, value in values.items()):
            return False
        self._is_changing = True
        for field, value in values.items():
            column = state.columns[kind.name, field]
            column.set(lid, value)
            if type(column) is not NumericColumn:
                state.dead_bytes += len(entry.body) // len(values)  # about what the value before took
        state.changed.array[lid] = 1
        state.timestamps.array[lid] = entry.timestamp_us
        self._is_changing = False
        return True

    def _mutate(self, entry: Entry) -> None:
        """Change numbers in place, of those documents that are there, in columns that there are."""
        self._finish_run()
        state, (changes, gids) = self._state, mutation_of(entry)
        lids = state.gid_map.find(gids)
        lids = lids[lids != NO_LID]
        self._is_changing = True
        for name, operation, operand in changes:
            column = state.columns.get((entry.document_type, name))
            if isinstance(column, NumericColumn):
                column.change(lids, operation, operand)
                state.changed.array[lids] = 1
        self._is_changing = False

    def _reindex(self, place: int, entry: Entry) -> None:
        """Put a document again as it is, also its time, if it is there. What indexing makes of it is replaced, unless
        the document was changed since that was made."""
        state = self._state
        if entry.gid in self._gids_of_run():
            if not entry.body:  # it is put under this layout
                self._outcomes[place] = _EXISTED
                return
            self._finish_run()
        if (lid := self._lids[entry.gid]) != NO_LID:
            codec, timestamp_us = state.codecs[entry.document_type], int(state.timestamps.array[lid])
            stored = self._read_stored(entry, lid)
            body, form = state.fields_of(stored), stored.form
            fields = codec.decode(body)
            if entry.body:
                read_us, made = made_by(entry, codec)
                if read_us != timestamp_us:
                    self._outcomes[place] = _REFUSED[Refusal.NOT_MET]
                    return
                fields = codec.update(fields, made)
                body = codec.encode(fields)
                if form is not StoredForm.WHOLE and entry.form is StoredForm.WHOLE:
                    form = StoredForm.REMADE
            self._outcomes[place] = _EXISTED
            self._add(place, replace(entry, timestamp_us=timestamp_us, form=form), fields, body)

    def _add_updated(
        self, place: int, entry: Entry, updated: dict[str, Any], form: StoredForm = StoredForm.WHOLE
    ) -> None:
        """Put a document as the updates have made it; it was stored in `form`."""
        kind, codec = self._state.layout.types[entry.document_type], self._state.codecs[entry.document_type]
        touched = {update.field: updated.get(update.field) for update in entry.updates or ()}
        if _can_hold(kind, touched):
            entry = entry if entry.form is form else replace(entry, form=form)
            self._add(place, entry, updated, codec.encode(updated))
        else:
            self._outcomes[place] = _REFUSED[Refusal.TOO_LARGE]

    def _read_stored(self, entry: Entry, lid: int) -> StoredDocument:
        """Read a live document from the store. Errors: InternalError where it is not there with this lid."""
        stored = self._prefetched.get(entry.gid)
        if stored is None or stored.lid != lid:
            stored = self._state.store.get(entry.gid)
        if stored is None or stored.lid != lid:
            raise InternalError(f"document {entry.id} has lid {lid} and is not in the store with it")
        return stored

    def _remove(self, place: int, entry: Entry) -> None:
        state = self._state
        if entry.gid in self._gids_of_run():
            self._finish_run()
        self._is_changing = True
        lids = state.gid_map.remove([entry.gid])
        self._lids[entry.gid] = NO_LID
        if lids[0] != NO_LID:
            self._outcomes[place] = _EXISTED
            state.bury(lids)
            state.references.remove(entry.document_type, entry.gid)
            state.live_counts[entry.document_type] -= 1
        self._writes.remove(entry.gid, entry.id, entry.timestamp_us)
        self._is_changing = False

    def _finish_run(self) -> None:
        """Apply the gathered puts, and write to the store what is due."""
        run, document_type = self._run, self._run_type
        self._is_changing = True
        if run:
            first, kind = self._state.limit, self._state.layout.types[document_type]
            plain = [entry for _, entry, _, _ in run if isinstance(entry, PlainChange)]
            if len(plain) == len(run) and not kind.languages:
                self._append_plain_rows(kind, plain)
                self._state.rows.note(first, plain)
                self._give_lids(_core.rows_of(plain, first, StoredForm.WHOLE))
            else:
                general = [_general(row) for row in run]
                documents = [values for _, values, _ in general]
                self._append_rows(document_type, documents, kind.languages_of(documents))
                self._give_lids(_rows_of(general, first))
            self._run, self._run_type = [], ""
            self._run_gids, self._gids_count = set(), 0
        if self._writes:
            self._state.store.write(self._writes)
            self._writes = StoreWrites()
        self._is_changing = False

    def _append_plain_rows(self, kind: TypeLayout, puts: list[PlainChange]) -> None:
        state = self._state
        for source in kind.columns:
            column = state.columns[kind.name, source.name]
            if source.read is None:
                column.append_plain(puts, source.source, state.limit)
            else:
                column.pad(state.limit)
                column.append(source.values(puts))
        state.index.add_puts(state.limit, kind.name, puts)

    def _append_rows(
        self, document_type: str, documents: Sequence[Valued], languages: Sequence[Mapping[str, str]] | None = None
    ) -> None:
        state = self._state
        for source in state.layout.types[document_type].columns:
            column = state.columns[document_type, source.name]
            column.pad(state.limit)
            column.append(source.values(documents))
        state.index.add_batch(state.limit, document_type, documents, languages)

    def _give_lids(self, rows: _Rows) -> None:
        state, run = self._state, self._run
        first, end = state.limit, state.limit + len(run)
        gids, times_us, sizes, stored = rows
        number = state.layout.types[self._run_type].number
        state.document_types.extend(np.array([number], np.uint16).repeat(len(run)))
        state.gids.extend(np.frombuffer(gids, np.uint8).reshape(-1, GID_BYTES))
        state.changed.pad(end)
        state.row_bytes.extend(sizes)
        state.live_bytes += int(sizes.sum(dtype=np.int64))
        state.timestamps.extend(times_us)
        state.live.set_range(first, end)
        before = state.gid_map.count
        lids = np.arange(first, end, dtype=np.uint32)
        previous = state.gid_map.insert(gids, lids)
        state.references.move(self._run_type, gids, lids)
        replacing = (previous != NO_LID).nonzero()[0]
        if len(replacing):
            state.bury(previous[replacing])
        state.live_counts[self._run_type] += state.gid_map.count - before
        state.limit = end
        self._writes.put_all(stored)
        for number in replacing.tolist():
            self._outcomes[run[number][0]] = _EXISTED
        if self._lids:
            self._lids.update(zip((gid for gid, _ in stored), range(first, end), strict=True))


def _asks(entry: Entry) -> bool:
    """Return whether an entry depends on the document that is there."""
    return entry.kind is not _PUT or entry.create or entry.condition is not None


def _general(row: _Row) -> tuple[Entry, dict[str, Any], bytes]:
    """A row of a run in which not all are plain changes: its entry, values and JSON."""
    _, entry, values, body = row
    if isinstance(entry, PlainChange):
        entry = entry_of_change(entry)
        return entry, entry.fields or {}, entry.body
    assert isinstance(values, dict)
    return entry, values, body


def _rows_of(run: Sequence[tuple[Entry, dict[str, Any], bytes]], first_lid: int) -> _Rows:
    """Return the rows of a run that is not of plain changes, as `core.rows_of` does."""
    stored = [
        (entry.gid, stored_value(entry.id, entry.timestamp_us, lid, body, entry.form))
        for lid, (entry, _, body) in enumerate(run, first_lid)
    ]
    times_us = np.array([entry.timestamp_us for entry, _, _ in run], np.uint64)
    sizes = np.array([min(len(body), _MOST_ROW_BYTES) for _, _, body in run], np.uint32)
    return b"".join([gid for gid, _ in stored]), times_us, sizes, stored


def _can_hold(kind: TypeLayout, values: Mapping[str, Any]) -> bool:
    """Return whether columns can keep what updates have made of these fields; None is nothing to keep."""
    try:
        kind.check({name: value for name, value in values.items() if value is not None})
    except InvalidInput:
        return False
    return True
