"""The command line's client: feeds as requests, hits as text, and the command without a service."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.client.feeding.operations import document_path
from paperwasp.client.query import excerpt, highlight, parameters_of
from paperwasp.container.document.request import read_path
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput

PARTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co"], exclude_characters=":"), min_size=1, max_size=8
)


@given(PARTS, PARTS, PARTS, st.none() | st.integers(0, 2**64 - 1), st.none() | PARTS)
def test_the_path_of_a_document_is_read_back_as_its_id(
    namespace: str, document_type: str, user_specified: str, number: int | None, group: str | None
) -> None:
    document_id = DocumentId(namespace, document_type, user_specified, number, None if number is not None else group)
    assert read_path(document_path(document_id)) == document_id


def test_highlights_and_excerpts() -> None:
    text = highlight("a <hi>blue</hi> train, <hi>blue")
    assert text.plain == "a blue train, blue"
    assert [(span.start, span.end) for span in text.spans] == [(2, 6)]
    long = "word " * 100 + "<hi>here</hi> " + "word " * 100
    shown = excerpt(long)
    assert "<hi>here</hi>" in shown
    assert shown.startswith("… word")
    assert shown.endswith(" …")
    assert len(shown) < 220


def test_words_and_yql_are_told_apart() -> None:
    assert parameters_of("blue train", ["hits=3"])["query"] == "blue train"
    assert parameters_of("select * from music where true", []) == {"yql": "select * from music where true"}
    with pytest.raises(InvalidInput):
        parameters_of("blue", ["hits"])


def paperwasp(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "paperwasp", *arguments], capture_output=True, text=True, timeout=30)


def test_help_teaches_and_loads_nothing_heavy() -> None:
    shown = paperwasp("--help")
    assert shown.returncode == 0
    assert all(command in shown.stdout for command in ("serve", "deploy", "feed", "query", "status"))
    heavy = ("numpy", "paperwasp.http.server", "rocksdict")
    script = f"import sys, paperwasp.cli; sys.exit(any(name in sys.modules for name in {heavy}))"
    assert subprocess.run([sys.executable, "-c", script], timeout=30).returncode == 0


def test_no_service_is_said_in_one_line() -> None:
    for arguments in (("query", "blue", "--url", "http://127.0.0.1:9"), ("status", "--url", "http://127.0.0.1:9")):
        told = paperwasp(*arguments)
        assert told.returncode == 1
        assert "Is `paperwasp serve` running?" in told.stdout + told.stderr
        assert "Traceback" not in told.stderr
