"""Visiting a content node: what a visit sees while documents come, change and go, across slices and restarts."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.content.views.visiting import span, visit
from paperwasp.coordination.messages.documents import VisitedDocument, VisitRequest, VisitResponse
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put, Remove
from paperwasp.errors import InvalidInput
from tests.content.nodes import TestNode, doc_id, put, remove, start, started, update

ALL = ("music", "book")
NOW_US = 2_000_000_000_000_000


def chunk(node: TestNode, **wishes: Any) -> VisitResponse:
    request = VisitRequest(wishes.pop("document_types", ALL), **wishes)
    return visit(node.node.reader.view().store, node.node.reader.view, request)


def visited(node: TestNode, **wishes: Any) -> list[VisitedDocument]:
    return [document for response in chunks(node, **wishes) for document in response.documents]


def chunks(node: TestNode, **wishes: Any) -> Iterator[VisitResponse]:
    token: bytes | None = b""
    while token is not None:
        response = chunk(node, token=token, **wishes)
        yield response
        token = response.token


def ids(documents: list[VisitedDocument]) -> list[str]:
    return [document.id for document in documents]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 7))
def test_what_is_there_throughout_is_seen_once(seed: int, slices: int, wanted: int) -> None:
    """Whatever is written between chunks, in whatever order slices go on, and however often the node is restarted."""
    random = Random(seed)
    with tempfile.TemporaryDirectory() as directory:
        node = start(Path(directory))
        try:
            node.apply(*(put(name, year=name) for name in range(40)))
            touched: set[int] = set()
            tokens: dict[int, bytes] = dict.fromkeys(range(slices), b"")
            seen: Counter[str] = Counter()
            while tokens:
                place = random.choice(list(tokens))
                response = chunk(node, token=tokens[place], slices=slices, slice=place, documents=wanted)
                seen.update(document.id for document in response.documents)
                assert len(response.documents) <= wanted
                if response.token is None:
                    del tokens[place]
                else:
                    tokens[place] = response.token
                node = meddle(node, random, touched, Path(directory))
            stayed = {doc_id(name).text for name in range(40) if name not in touched}
            assert stayed <= seen.keys()
            assert {seen[name] for name in stayed} <= {1}
            assert all(count == 1 for count in seen.values()), "no place in the order is visited twice"
        finally:
            node.close()


def meddle(node: TestNode, random: Random, touched: set[int], directory: Path) -> TestNode:
    """Puts, updates, removes, comes and goes. `touched`: what was not there for a while."""
    for _ in range(random.randrange(6)):
        name = random.randrange(60)
        match random.randrange(4):
            case 0:
                node.apply(put(name, year=name, title="again"))
            case 1:
                node.apply(update(name, plays=random.randrange(100)))
            case 2:
                node.apply(update(name, note="new"))
            case 3:
                node.apply(remove(name))
                touched.add(name)
    if random.random() < 0.05:
        node.close()
        return start(directory)
    return node


def test_documents_are_as_they_are_now(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put(1, title="Blue Train", year=1957), put(2, title="So What"), put(3, "book", pages=3))
        node.apply(update(1, plays=7), update(2, title="Kind of Blue"), remove(3, "book"))
        found = {document.id: orjson.loads(document.fields or b"null") for document in visited(node)}
        assert found == {
            "id:n:music::1": {"title": "Blue Train", "year": 1957, "plays": 7, "live": False},
            "id:n:music::2": {"title": "Kind of Blue", "live": False},
        }
        some = visited(node, fields=frozenset({"year", "plays"}), document_types=("music",))
        assert {orjson.loads(document.fields or b"null").get("plays") for document in some} == {7, None}
        assert {document.fields for document in visited(node, fields=frozenset())} == {b"{}"}


def test_order_and_slices(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(*(put(name) for name in range(50)))
        order = ids(visited(node, documents=7))
        assert order == sorted(order, key=lambda text: DocumentId.parse(text).gid)
        assert len(order) == 50
        for slices in (1, 2, 3, 7, 1000):
            assert [id for place in range(slices) for id in ids(visited(node, slices=slices, slice=place))] == order


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 2**31 - 1), st.data())
def test_slices_meet(slices: int, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, slices - 1))
    begin, end = span(VisitRequest(ALL, slices=slices, slice=place))
    if place + 1 < slices:
        assert span(VisitRequest(ALL, slices=slices, slice=place + 1))[0] == end
    else:
        assert end is None
    assert (place == 0) == (begin == bytes(12))


def test_numbers_groups_and_prefixes(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        numbered = [DocumentId("n", "music", name, number=5) for name in "abc"]
        grouped = [DocumentId("n", "music", name, group="it's") for name in "abc"]
        node.apply(*(Put(id, {}) for id in (*numbered, *grouped, doc_id(1), DocumentId("m", "music", "1"))))
        assert sorted(ids(visited(node, selection="id.user == 5"))) == [id.text for id in numbered]
        assert sorted(ids(visited(node, selection='id.group == "it\'s"'))) == [id.text for id in grouped]
        one = visited(node, id_prefixes=("id:n:music:n=5:",), location=numbered[0].gid[:4], document_types=("music",))
        assert sorted(ids(one)) == [id.text for id in numbered]
        assert span(VisitRequest(ALL, location=b"\xff" * 4)) == (b"\xff" * 4 + bytes(8), None)
        assert ids(visited(node, id_prefixes=("id:m:music:",))) == ["id:m:music::1"]
        assert visited(node, location=numbered[0].gid[:4], selection="id.user == 6") == []


def test_selections(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(*(put(name, year=name, title=f"song {name}") for name in range(20)), put(1, "book", pages=5))
        node.apply(update(3, year=100))
        assert ids(visited(node, selection="music.year == 100")) == ["id:n:music::3"]
        assert ids(visited(node, selection='music.title = "song 1*" and music.year > 18')) == ["id:n:music::19"]
        assert ids(visited(node, selection="book")) == ["id:n:book::1"]
        assert visited(node, selection="now() < 0") == []
        assert len(visited(node, selection="now() - 1 > 0", now_us=NOW_US)) == 21
        with pytest.raises(InvalidInput):
            chunk(node, selection="music.year ==")


def test_timestamps(tmp_path: Path) -> None:
    """A change in place is a change too; from is inclusive, to exclusive."""
    with started(tmp_path) as node:
        node.apply(put(1, year=1))
        node.apply(put(2, year=2))
        view = node.node.reader.view()
        first, second = (
            view.timestamp_of(found) for _, found in sorted(view.store.scan(), key=lambda item: item[1].id)
        )
        assert first < second
        assert ids(visited(node, from_us=second)) == ["id:n:music::2"]
        assert ids(visited(node, from_us=first, to_us=second)) == ["id:n:music::1"]
        assert ids(visited(node, to_us=first)) == []
        node.apply(update(1, plays=1))
        assert ids(visited(node, from_us=second + 1)) == ["id:n:music::1"]
        assert ids(visited(node, to_us=second + 1)) == ["id:n:music::2"]


def test_removes(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put(1, year=1), put(2, year=2), put(3, year=3))
        node.apply(remove(1), remove(2), remove("never"), put(2, year=4))
        removed = [found.id for found in visited(node, removes=True) if found.fields is None]
        assert "id:n:music::1" in removed
        assert "id:n:music::2" not in removed
        assert "id:n:music::1" not in ids(visited(node))
        assert len(visited(node)) == 2
        later_us = NOW_US * 10
        assert "id:n:music::1" not in ids(visited(node, removes=True, now_us=later_us)), "older than two weeks"
        assert ids(visited(node, removes=True, selection="music.year < 3")) == []
        assert ids(visited(node, removes=True, selection='id.specific == "1"')) == ["id:n:music::1"]


def test_a_chunk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By bytes, by the deadline, and by documents looked at, of which tombstones are some."""
    monkeypatch.setattr(limits, "VISIT_SCANNED", 50)
    with started(tmp_path) as node:
        node.apply(*(put(name, note="x" * 1000) for name in range(400)))
        assert len(chunk(node, size_bytes=5000).documents) == 5
        assert len(chunk(node, size_bytes=1).documents) == 1
        assert chunk(node, selection="music.year == 3").documents == ()
        assert sum(1 for _ in chunks(node, selection="music.year == 3")) == 8
        node.apply(*(remove(name) for name in range(400)))
        empty = list(chunks(node))
        assert len(empty) == 8
        assert [found.progress for found in empty] == sorted(found.progress for found in empty)
        assert empty[-1].progress == 1.0
        monkeypatch.undo()
        late = chunk(node, selection="music.year == 3", deadline_ns=1)
        assert late.token is not None
        assert late.progress < 0.5


def test_the_last_chunk_is_known(tmp_path: Path) -> None:
    """Nobody is sent for more where nothing is left, though there are a few documents of others behind."""
    with started(tmp_path) as node:
        node.apply(*(put(name) for name in range(5)), *(put(name, "book") for name in range(5)))
        assert chunk(node, documents=10).token is None
        assert chunk(node, documents=5, document_types=("music",)).token is None
        assert chunk(node, documents=4, document_types=("music",)).token is not None
        assert chunk(node, document_types=()) == VisitResponse((), None, 1.0)


@pytest.mark.parametrize("token", [b"x", b"0123456789abc"])
def test_tokens_that_are_none(tmp_path: Path, token: bytes) -> None:
    with started(tmp_path) as node, pytest.raises(InvalidInput):
        chunk(node, token=token)


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=12, max_size=12), st.integers(1, 4))
def test_any_place_can_be_gone_on_from(token: bytes, slices: int) -> None:
    """A token of elsewhere never crashes, and never leads out of the slice."""
    with tempfile.TemporaryDirectory() as directory, started(Path(directory)) as node:
        node.apply(*(put(name) for name in range(10)))
        for place in range(slices):
            whole = set(ids(visited(node, slices=slices, slice=place)))
            assert set(ids(list(chunk(node, token=token, slices=slices, slice=place).documents))) <= whole


def test_a_removed_type_is_not_visited(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put(1), put(1, "book"), Remove(doc_id(2)))
        assert ids(visited(node, document_types=("music", "film"))) == ["id:n:music::1"]
        assert visited(node, document_types=("film",), id_prefixes=("id:n:film:",)) == []


def test_visits_while_another_thread_writes(tmp_path: Path) -> None:
    """Each document is seen once in each visit, whole: two fields that are changed together are never seen apart."""
    documents, visits = 60, 25
    done = Event()
    with started(tmp_path) as node:
        node.apply(*(put(name, plays=0, sizes=[0], genre="old") for name in range(documents)))

        def write() -> None:
            random = Random(7)
            for number in count(1):
                if done.is_set():
                    return
                name = random.randrange(documents)
                both = update(name, plays=number, sizes=[number])
                replaced = put(name, plays=number, sizes=[number], genre="new")
                in_place = update(random.randrange(documents), year=number)
                node.apply(
                    both if number % 3 else replaced, in_place, put(f"new {number}"), remove(f"new {number - 9}")
                )

        writer = Thread(target=write)
        writer.start()
        last: dict[str, tuple[int, int]] = {}
        try:
            for _ in range(visits):
                found = {id: orjson.loads(fields or b"") for id, fields, _ in visited(node, documents=9)}
                base = [found[doc_id(name).text] for name in range(documents)]
                assert [fields["plays"] for fields in base] == [fields["sizes"][0] for fields in base]
                for id, fields in found.items():
                    now = (fields.get("plays", 0), fields.get("year", 0))
                    assert now[0] >= last.get(id, (0, 0))[0], "a later visit sees no older document"
                    last[id] = now
        finally:
            done.set()
            writer.join()
