"""HPACK beside an independent implementation, and the examples of RFC 7541."""

from __future__ import annotations

import hpack
import pytest
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core._core import HpackDecoder, http2_header_block

Fields = list[tuple[bytes, bytes]]

GET = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"www.example.com")]
NO_CACHE = [*GET, (b"cache-control", b"no-cache")]
CUSTOM = [
    (b":method", b"GET"),
    (b":scheme", b"https"),
    (b":path", b"/index.html"),
    (b":authority", b"www.example.com"),
    (b"custom-key", b"custom-value"),
]
AUTHORITY = (b":authority", b"www.example.com")
CACHE = (b"cache-control", b"no-cache")
KEY = (b"custom-key", b"custom-value")
REQUESTS = [(GET, [AUTHORITY], 57), (NO_CACHE, [CACHE, AUTHORITY], 110), (CUSTOM, [KEY, CACHE, AUTHORITY], 164)]
"""Of C.3 and C.4: the fields of each block, the table behind it, and what that counts."""


@pytest.mark.parametrize(
    ("block", "fields", "entries", "table_bytes"),
    [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", [(b"custom-key", b"custom-header")], None, 55),
        ("040c2f73616d706c652f70617468", [(b":path", b"/sample/path")], [], 0),
        ("100870617373776f726406736563726574", [(b"password", b"secret")], [], 0),
        ("82", [(b":method", b"GET")], [], 0),
    ],
    ids=["C.2.1", "C.2.2", "C.2.3", "C.2.4"],
)
def test_the_representations_of_fields(block: str, fields: Fields, entries: Fields | None, table_bytes: int) -> None:
    decoder = HpackDecoder()
    assert decoder.decode(bytes.fromhex(block)) == fields
    assert decoder.entries() == (fields if entries is None else entries)
    assert decoder.table_bytes == table_bytes


@pytest.mark.parametrize(
    "blocks",
    [
        [
            "828684410f7777772e6578616d706c652e636f6d",
            "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        ],
        [
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            "828684be5886a8eb10649cbf",
            "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        ],
    ],
    ids=["C.3", "C.4"],
)
def test_requests_of_one_connection(blocks: list[str]) -> None:
    decoder = HpackDecoder()
    for block, (fields, entries, table_bytes) in zip(blocks, REQUESTS, strict=True):
        assert decoder.decode(bytes.fromhex(block)) == fields
        assert decoder.entries() == entries
        assert decoder.table_bytes == table_bytes


DATE = (b"date", b"Mon, 21 Oct 2013 20:13:21 GMT")
LATER = (b"date", b"Mon, 21 Oct 2013 20:13:22 GMT")
PRIVATE = (b"cache-control", b"private")
LOCATION = (b"location", b"https://www.example.com")
GZIP = (b"content-encoding", b"gzip")
COOKIE = (b"set-cookie", b"foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1")
RESPONSES = [
    ([(b":status", b"302"), PRIVATE, DATE, LOCATION], [LOCATION, DATE, PRIVATE, (b":status", b"302")], 222),
    ([(b":status", b"307"), PRIVATE, DATE, LOCATION], [(b":status", b"307"), LOCATION, DATE, PRIVATE], 222),
    ([(b":status", b"200"), PRIVATE, LATER, LOCATION, GZIP, COOKIE], [COOKIE, GZIP, LATER], 215),
]
"""Of C.5 and C.6, with a table of 256 bytes."""


@pytest.mark.parametrize(
    "blocks",
    [
        [
            "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d54"
            "6e1768747470733a2f2f7777772e6578616d706c652e636f6d",
            "4803333037c1c0bf",
            "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b42"
            "5a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
        ],
        [
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
            "4883640effc1c0bf",
            "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af2708"
            "7f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
        ],
    ],
    ids=["C.5", "C.6"],
)
def test_responses_of_one_connection_evict_entries(blocks: list[str]) -> None:
    decoder = HpackDecoder()
    assert decoder.decode(bytes.fromhex("3fe101")) == []  # a table of 256 bytes
    for block, (fields, entries, table_bytes) in zip(blocks, RESPONSES, strict=True):
        assert decoder.decode(bytes.fromhex(block)) == fields
        assert decoder.entries() == entries
        assert decoder.table_bytes == table_bytes


def _huffman_text(symbols: list[int]) -> bytes:
    """A string of these symbols as an independent table codes them."""
    bits = "".join(f"{REQUEST_CODES[symbol]:0{REQUEST_CODES_LENGTH[symbol]}b}" for symbol in symbols)
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big") if bits else b""


def _literal(text: bytes) -> bytes:
    """A block of one field: the name `a`, and this coded value."""
    assert len(text) < 127
    return b"\x00\x01a" + bytes([0x80 | len(text)]) + text


@pytest.mark.parametrize("symbol", range(256))
def test_every_byte_has_its_code_behind_every_number_of_bits(symbol: int) -> None:
    for before in ("", "0", "00000", "&", "&0", "&&&", "X", "\\", "00000000000000000000"):
        text = before.encode() + bytes([symbol]) + b"00"
        assert HpackDecoder().decode(_literal(_huffman_text(list(text)))) == [(b"a", text)]


@given(st.binary(max_size=60) | st.text("abcdefgh/%=&0123456789.-", max_size=60).map(str.encode))
def test_huffman_codes_beside_an_independent_table(text: bytes) -> None:
    assert HpackDecoder().decode(_literal(_huffman_text(list(text[:30])))) == [(b"a", text[:30])]


@pytest.mark.parametrize(
    "text",
    [
        _huffman_text([ord("a"), 256]) + b"\xff",
        b"\xff\xff\xff\xff",
        _huffman_text([ord("0")] * 8) + b"\xff",
        b"\x00",
        b"\x18\xfe",
    ],
    ids=["EOS in it", "only EOS", "a byte of padding", "padded by zeros", "padded by a zero at the end"],
)
def test_damaged_huffman_text_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="damaged"):
        HpackDecoder().decode(_literal(text))


DAMAGED = "80 be ff80808080808080808001 7f 41 00 0001 0002 000161 00016103 3fe21f 823f00 20be"
"""Index 0, beyond the table, numbers without end, text that is cut, a table too large, a size behind a field."""


@pytest.mark.parametrize("block", DAMAGED.split())
def test_damaged_blocks_are_refused(block: str) -> None:
    with pytest.raises(ValueError, match="damaged"):
        HpackDecoder().decode(bytes.fromhex(block))


_NAME = st.text("abcxyz-0123456789", min_size=1, max_size=12).map(str.encode)
_VALUE = st.binary(max_size=40) | st.sampled_from([b"gzip, deflate", b"GET", b"/", b"200", b"", b"x" * 1500])
_FIELD = st.tuples(_NAME | st.sampled_from([b":path", b":method", b"cookie", b"accept-encoding"]), _VALUE)
_BLOCKS = st.lists(st.tuples(st.lists(_FIELD, max_size=8), st.booleans(), st.sampled_from([None, 0, 60, 300, 4096])))


@given(_BLOCKS)
def test_blocks_of_an_independent_encoder_are_read(blocks: list[tuple[Fields, bool, int | None]]) -> None:
    """With names and values that come again, entries that are evicted, and tables that change their size."""
    encoder, decoder, twin = hpack.Encoder(), HpackDecoder(), hpack.Decoder()
    for fields, is_coded, table_bytes in blocks:
        if table_bytes is not None:
            encoder.header_table_size = table_bytes
        block = encoder.encode(fields, huffman=is_coded)
        assert decoder.decode(block) == [tuple(each) for each in twin.decode(block, raw=True)] == fields
        assert decoder.entries() == [tuple(map(bytes, each)) for each in twin.header_table.dynamic_entries]


_SENT_VALUE = st.text("abcdefgh/%=&0123456789.- \xe9\xff", max_size=40).map(lambda text: text.strip().encode("latin-1"))


@given(st.integers(100, 999), st.lists(st.tuples(_NAME, _SENT_VALUE), max_size=6))
def test_the_heads_of_answers_are_read_by_an_independent_decoder(status: int, fields: Fields) -> None:
    block = http2_header_block(status, fields)
    assert [tuple(each) for each in hpack.Decoder().decode(block, raw=True)] == [
        (b":status", str(status).encode()),
        *fields,
    ]


def test_heads_may_be_put_together_and_take_few_bytes() -> None:
    assert http2_header_block(200, []) == b"\x88"
    assert http2_header_block(0, [(b"accept-encoding", b"gzip, deflate")]) == b"\x90"
    parts = http2_header_block(404, []) + http2_header_block(0, [(b"content-type", b"text/html")])
    assert [tuple(each) for each in hpack.Decoder().decode(parts, raw=True)] == [
        (b":status", b"404"),
        (b"content-type", b"text/html"),
    ]


@pytest.mark.parametrize(
    "field",
    [(b"Name", b"x"), (b"", b"x"), (b":path", b"/"), (b"connection", b"close"), (b"a", b"1\r\nb: 2"), (b"a", b" x")],
)
def test_heads_that_http2_does_not_have_are_refused(field: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match="HTTP/2 does not have"):
        http2_header_block(200, [field])
    with pytest.raises(ValueError, match="three digits"):
        http2_header_block(99, [])
