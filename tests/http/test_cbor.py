"""CBOR beside JSON: what each says in the other, what is refused. Bytes by RFC 8949, appendix A, or worked by hand."""

from __future__ import annotations

import asyncio
import base64
import math
import struct
from typing import Any

import cbor2
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.errors import InvalidInput, TooLarge
from paperwasp.http.cbor import as_accepted, as_json_request, prefers_cbor, to_cbor, to_json
from paperwasp.http.messages import Request, StreamedResponse, json_response, text_response

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(JSON_VALUES)
def test_json_comes_back_from_cbor_as_it_was(value: Any) -> None:
    body = orjson.dumps(value)
    assert cbor2.loads(to_cbor(body)) == value
    assert to_json(to_cbor(body)) == body
    assert to_json(cbor2.dumps(value, canonical=True)) == orjson.dumps(value) or isinstance(value, dict | list | float)


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        ("00", "0"),
        ("1bffffffffffffffff", "18446744073709551615"),
        ("3b7fffffffffffffff", "-9223372036854775808"),
        ("c249010000000000000000", "18446744073709551616"),
        ("c349010000000000000000", "-18446744073709551617"),
        ("f93c00", "1.0"),
        ("fa47c35000", "100000.0"),
        ("fa3dcccccd", "0.10000000149011612"),
        ("fb3ff199999999999a", "1.1"),
        ("f97e00", '"NaN"'),
        ("fa7f800000", '"Infinity"'),
        ("fbfff0000000000000", '"-Infinity"'),
        ("f6", "null"),
        ("4401020304", '"AQIDBA=="'),
        ("5f42010243030405ff", '"AQIDBAU="'),
        ("62c3bc", '"ü"'),
        ("7f657374726561646d696e67ff", '"streaming"'),
        ("9f018202039f0405ffff", "[1,[2,3],[4,5]]"),
        ("a201020304", '{"1":2,"3":4}'),
        ("a1f50a", '{"true":10}'),
        ("a1fb3ff800000000000001", '{"1.5":1}'),
        ("a2616101616102", '{"a":2}'),
        ("d9d9f7a0", "{}"),
    ],
)
def test_each_kind_of_item_has_its_json(encoded: str, expected: str) -> None:
    assert to_json(bytes.fromhex(encoded)).decode() == expected


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        ("", "is not CBOR"),
        ("ff", "is not CBOR"),
        ("9f01", "is not CBOR"),
        ("61ff", "is not CBOR"),
        ("1c", "is not CBOR"),
        ("9b1000000000000000", "is not CBOR"),
        ("bb1000000000000000", "is not CBOR"),
        ("5b7fffffffffffffff", "is not CBOR"),
        ("81" * 100_000, "is not CBOR"),
        ("c1" * 100_000, "CBOR"),
        ("d9d9f7" * 100_000 + "00", "is not CBOR"),
        ("0000", "goes on for 1 bytes"),
        ("c11a514b67b0", "tag 1"),
        ("c48221196ab3", "tag 4"),
        ("c5822003", "tag 5"),
        ("d81c81d81d00", "tag 29"),
        ("d81900", "tag 25"),
        ("d82361612f", "tag 35"),
        ("d9012c01", "tag 300"),
        ("f7", "that JSON has not"),
        ("f8ff", "that JSON has not"),
        ("a1f600", "neither text nor a number"),
        ("a18000", "neither text nor a number"),
        ("a1f97e0000", "neither text nor a number"),
        ("c25907d0" + "ff" * 2000, "too large"),
        ("a1c25907d0" + "ff" * 2000 + "00", "too large a number"),
    ],
)
def test_what_json_cannot_say_is_refused(encoded: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        to_json(bytes.fromhex(encoded))


@given(st.binary(max_size=200))
def test_any_bytes_become_json_or_are_refused(body: bytes) -> None:
    try:
        orjson.loads(to_json(body))
    except InvalidInput as error:
        assert error.message


@given(st.binary())
def test_bytes_are_what_a_raw_field_is_in_json(value: bytes) -> None:
    assert base64.b64decode(orjson.loads(to_json(cbor2.dumps({"r": value})))["r"]) == value


@given(st.floats(width=32))
def test_single_precision_is_kept(value: float) -> None:
    encoded = b"\xfa" + struct.pack(">f", value)
    read = orjson.loads(to_json(encoded))
    assert read == value if math.isfinite(value) else read in ("NaN", "Infinity", "-Infinity")


@pytest.mark.parametrize(
    ("accept", "preferred", "at_a_tie"),
    [
        ("", False, False),
        ("*/*", False, False),
        ("application/*", False, False),
        ("application/cbor", True, True),
        ("Application/CBOR ; q=0.3", True, True),
        ("application/cbor, application/json;q=0.9", True, True),
        ("application/cbor, application/json", False, True),
        ("application/cbor;q=0.5, application/json", False, False),
        ("application/cbor;q=0.5, */*", False, False),
        ("application/cbor, */*;q=0.1", True, True),
        ("application/cbor;q=0", False, False),
        ("application/cbor;q=x", False, False),
        ("application/cbor;q=nan", False, False),
    ],
)
def test_who_gets_cbor(accept: str, preferred: bool, at_a_tie: bool) -> None:
    assert prefers_cbor(accept) == preferred
    assert prefers_cbor(accept, at_a_tie=True) == at_a_tie


def test_a_request_and_its_answer_change_their_form_together() -> None:
    async def test() -> None:
        headers = {"content-type": "application/cbor; x=y", "accept": "application/cbor"}
        request = Request("POST", "/", headers=headers, body=cbor2.dumps({"a": 1}))
        read = await as_json_request(request)
        assert (read.body, read.content_type) == (b'{"a":1}', "application/json")
        answer = await as_accepted(read, json_response(404, {"message": "no"}, {"X-Test": "yes"}))
        assert answer == as_cbor({"message": "no"})
        large = await as_json_request(Request("POST", "/", headers=headers, body=cbor2.dumps(["x" * 1000] * 1000)))
        assert orjson.loads(large.body) == ["x" * 1000] * 1000

    def as_cbor(content: object) -> object:
        answer = json_response(404, None, {"X-Test": "yes"})
        return type(answer)(404, cbor2.dumps(content), "application/cbor", answer.headers)

    asyncio.run(test())


def test_what_is_not_json_stays_as_it_is() -> None:
    async def nothing() -> Any:
        yield b""

    async def test() -> None:
        request = Request("POST", "/", headers={"accept": "application/cbor"}, body=b"<xml/>")
        assert await as_json_request(request) is request
        text, stream = text_response(200, "text"), StreamedResponse(200, nothing())
        assert await as_accepted(request, text) is text
        assert await as_accepted(request, stream) is stream

    asyncio.run(test())


def test_a_body_of_which_each_byte_may_be_a_value_is_bounded() -> None:
    """An array of empty arrays, one byte each: what is in it is built in one step that nobody can interrupt."""
    count = limits.CBOR_BODY_BYTES - 5
    headers = {"content-type": "application/cbor"}

    async def run() -> None:
        most = b"\x9a" + count.to_bytes(4, "big") + b"\x80" * count
        read = await as_json_request(Request("POST", "/", headers=headers, body=most))
        assert read.body == b"[" + b",".join([b"[]"] * count) + b"]"
        with pytest.raises(TooLarge, match="at most 1048576 bytes"):
            await as_json_request(Request("POST", "/", headers=headers, body=most + b"\x80"))

    asyncio.run(run())
