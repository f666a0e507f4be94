"""The plain twin of core/documents/page.cpp, which says what it computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson
from msgspec import Struct

from tests.oracles.members import pick_members


class PageForm(Struct, frozen=True):
    """The form of a page: what all its hits share."""

    keys: Sequence[bytes]
    """The keys of the members that are shown, as JSON, with the colon."""
    as_stored: bool
    """Whether all members are shown, in the order of the document."""
    required: int
    """A bit for each key whose member cannot be left out."""
    shows_empty: int
    """A bit for each key whose member is shown where its value is empty, too."""
    unset: Sequence[bytes]
    """For each key the JSON of the value that is not shown, as it stands for none; empty: there is none."""
    source: bytes
    """`,"source":"…"`."""
    type: bytes
    """`"sddocname":"…"`; empty: it is not shown."""
    id_prefix: bytes
    """The text before the gid in the id of a hit, escaped; empty: the id is the document's, and is shown."""


def page(
    rows: Mapping[int, tuple[bytes, bytes]],
    lids: Sequence[int],
    relevances: bytes,
    changed: Sequence[int],
    first_lid: int,
    gids: Sequence[bytes],
    form: PageForm,
) -> list[bytes | None]:
    """The JSON of each hit; None where it cannot be made of its row: it has no finite relevance or is not among the
    rows, its document was changed in place or is below `first_lid`, or lacks a member that is required."""
    hits: list[bytes | None] = []
    for number, (lid, relevance) in enumerate(zip(lids, orjson.loads(relevances), strict=True)):
        is_done = lid in rows and first_lid <= lid < len(changed) and not changed[lid] and relevance is not None
        fields = _fields(rows[lid][1], form) if is_done else None
        if fields is None:
            hits.append(None)
            continue
        id_ = orjson.dumps(rows[lid][0].decode())
        if form.id_prefix:
            id_ = b'"%b%b"' % (form.id_prefix, gids[number].hex().encode())
        hits.append(_hit(id_, relevance, [b"" if form.id_prefix else b'"documentid":' + id_, fields[1:-1]], form))
    return hits


def value_page(values: Sequence[bytes], relevances: bytes, gids: Sequence[bytes], form: PageForm) -> list[bytes | None]:
    """The JSON of each hit; None where it has no finite relevance. `values`: for each key, the JSON array of the values
    of all hits: null where there is none."""
    hits: list[bytes | None] = []
    columns = [orjson.loads(array) for array in values]
    for number, (gid, relevance) in enumerate(zip(gids, orjson.loads(relevances), strict=True)):
        fields = [
            key + orjson.dumps(column[number])
            for place, (key, column) in enumerate(zip(form.keys, columns, strict=True))
            if column[number] is not None and (form.shows_empty >> place & 1 or column[number] not in ("", [], {}))
        ]
        id_ = b'"%b%b"' % (form.id_prefix, gid.hex().encode())
        hits.append(None if relevance is None else _hit(id_, relevance, fields, form))
    return hits


def _hit(id_: bytes, relevance: float, fields: Sequence[bytes], form: PageForm) -> bytes:
    members = b",".join(member for member in (form.type, *fields) if member)
    whole = b',"fields":{%b}' % members if members else b""
    return b'{"id":%b,"relevance":%b%b%b}' % (id_, orjson.dumps(relevance), form.source, whole)


def _fields(json: bytes, form: PageForm) -> bytes | None:
    shown = json if form.as_stored else pick_members([json], form.keys, form.required)[0]
    if shown is None:
        return None
    keys = [orjson.loads(key[:-1]) for key in form.keys]
    kept = {key for place, key in enumerate(keys) if form.shows_empty >> place & 1}
    unset = {key: json for key, json in zip(keys, form.unset, strict=True) if json}
    members = orjson.loads(shown).items()
    known = {key: value for key, value in members if key not in unset or orjson.dumps(value) != unset[key]}
    return orjson.dumps({key: value for key, value in known.items() if key in kept or value not in ("", [], {})})
