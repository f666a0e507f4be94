"""The document that a path names, read at once where no character needs a closer look, and character by character.

Authority: the document of a path is the same however its characters are encoded
(https://docs.vespa.ai/en/reference/api/document-v1.html).
"""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paperwasp.container.document.request import ROOT, read_path
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput, NotFound, PaperwaspError

PARTS = st.text(st.sampled_from("ab:%+/é\x7f\ufdd0"), max_size=4) | st.sampled_from(["docid", "number", "group", "7"])


def outcome(raw_path: str) -> object:
    """What becomes of a path, and whether it is the fault of the path or of the id."""
    try:
        found = read_path(raw_path)
    except PaperwaspError as error:
        return type(error)
    return None if found is None else (found, found.text, found.gid)


@given(st.lists(PARTS, max_size=6))
@example(["docid", "b", "docid", "x"])
@example(["a", "docid", "docid", "x"])
@example(["a", "b", "docid", "x", "docid", "y"])
@example(["a", "b", "number", "7", "docid", "y"])
@example(["a", "b", "docid", "x:y"])
@example(["a", "b:", "docid", "x"])
@example(["", "b", "docid", "x"])
def test_a_path_names_the_same_document_however_it_is_written(parts: list[str]) -> None:
    raw_path = ROOT + "/".join(parts)
    # A percent sign anywhere has the whole path read the general way: here one for the last `a`, which no keyword has.
    start, found, rest = raw_path.removeprefix(ROOT).rpartition("a")
    if found and "%" not in raw_path:
        assert outcome(raw_path) == outcome(f"{ROOT}{start}%61{rest}")


def test_the_id_of_a_path() -> None:
    for raw_path in (f"{ROOT}a/b/docid/x/y:z", f"{ROOT}a/b/docid/x%2Fy:z"):
        assert read_path(raw_path) == DocumentId("a", "b", "x/y:z")
    with pytest.raises(InvalidInput, match="illegal code point 0xFDD0"):
        read_path(f"{ROOT}a/b/docid/\ufdd0")
    with pytest.raises(InvalidInput, match="the namespace contains ':'"):
        read_path(f"{ROOT}a:/b/docid/x")
    with pytest.raises(NotFound):
        read_path(f"{ROOT}a//docid/x")
