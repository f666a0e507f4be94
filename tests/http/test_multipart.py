"""Forms in parts: what clients send is read, and what nobody should is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.errors import InvalidInput
from paperwasp.http.multipart import Part, parse_multipart

TYPE = 'multipart/form-data; boundary="b:1"'


def written(parts: list[Part], boundary: str = "b:1") -> bytes:
    body = b""
    for part in parts:
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{part.name}"\r\n'.encode()
        body += f"Content-Type: {part.content_type}; charset=utf-8\r\n\r\n".encode() + part.content + b"\r\n"
    return body + f"--{boundary}--\r\n".encode()


def test_parts_are_found_by_name() -> None:
    parts = [
        Part("prepareParams", "application/json", b"{}"),
        Part("applicationPackage", "application/zip", b"PK\r\n-"),
    ]
    assert parse_multipart(TYPE, written(parts)) == {part.name: part for part in parts}
    assert parse_multipart("multipart/form-data; boundary=b:1", b"preamble\r\n" + written(parts)).keys()


def test_an_empty_form_has_no_parts() -> None:
    assert parse_multipart(TYPE, b"--b:1--") == {}


@given(st.lists(st.binary(max_size=200).filter(lambda b: b"\r\n--b:1" not in b"\r\n" + b), max_size=5))
def test_any_content_comes_through(contents: list[bytes]) -> None:
    parts = [Part(f"p{number}", "text/plain", content) for number, content in enumerate(contents)]
    assert list(parse_multipart(TYPE, written(parts)).values()) == parts


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", b"--b--"),
        (TYPE, b""),
        (TYPE, b"--b:1"),
        (TYPE, b"--b:1\r\n\r\ncontent\r\n--b:1--"),
        (TYPE, b"--b:1\r\nContent-Disposition: form-data\r\n\r\n\r\n--b:1--"),
        (TYPE, b"--b:1junk\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--b:1--"),
        (TYPE, b"--b:1\r\nContent-Disposition: form-data; name=a\r\n--b:1--"),
        (TYPE, written([Part("p", "text/plain", b"")] * (limits.MULTIPART_PARTS + 1))),
    ],
)
def test_other_bodies_are_refused(content_type: str, body: bytes) -> None:
    with pytest.raises(InvalidInput):
        parse_multipart(content_type, body)


@given(st.text(max_size=60), st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content_type: str, body: bytes) -> None:
    for kind in (content_type, TYPE):
        for content in (body, b"--b:1\r\n" + body, b"--b:1\r\n" + body + b"\r\n--b:1--"):
            try:
                parse_multipart(kind, content)
            except InvalidInput:
                continue
