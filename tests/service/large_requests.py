"""Requests that ask for far more than their size, and how they are answered: the rows of `test_limits_over_http`."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import cbor2
from isal import isal_zlib

from paperwasp import limits

LEAST_MIB: Final = 60
"""Memory that a request may take beside its own size, inflated, without a word."""
DOCUMENT: Final = "/document/v1/ns/item/docid/1"
_VISIT: Final = "/document/v1/ns/item/docid?cluster=items&selection="
_DEPLOY: Final = "/application/v2/tenant/default/prepareandactivate?applicationName=other"
_APPLICATION: Final = (
    "/application/v2/tenant/default/application/default/environment/prod/region/default/instance/default"
)
_JSON: Final = {"Content-Type": "application/json"}
_FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
_CBOR: Final = {"Content-Type": "application/cbor"}
_GZIP: Final = {**_JSON, "Content-Encoding": "gzip"}
ZIP: Final = {"Content-Type": "application/zip"}
_TAR: Final = {"Content-Type": "application/x-gzip"}
_MULTIPART: Final = {"Content-Type": "multipart/form-data; boundary=b"}
WHERE: Final = "select * from item where "
SERVICES: Final = """<services version="1.0">
  <container id="default" version="1.0"><search/><document-api/></container>
  <content id="items" version="1.0">
    <redundancy>1</redundancy>
    <documents><document type="item" mode="index"/></documents>
  </content>
</services>"""
SCHEMA: Final = """schema item {
    document item {
        field title type string { indexing: index | summary }
        field word type string { indexing: attribute | summary }
        field tags type array<string> { indexing: summary }
        field numbers type array<int> { indexing: attribute | summary }
        field properties type map<string, string> { indexing: summary }
        field rating type float { indexing: attribute }
        field place type position { indexing: attribute }
        field who type predicate {
            indexing: attribute
            index { arity: 2 }
        }
        field dense type tensor<float>(d[4]) { indexing: attribute | summary }
    }
    rank-profile vectors { inputs { query(v) tensor<float>(d[4]) } first-phase { expression: sum(query(v)) } }
}"""
FILES: Final[dict[str, bytes]] = {"services.xml": SERVICES.encode(), "schemas/item.sd": SCHEMA.encode()}


@dataclass(frozen=True)
class Row:
    """A request, and how it is answered."""

    status: int
    said: str
    """In the message."""
    method: str
    target: str
    body: Callable[[], bytes] = bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    of_config: bool = False
    most_mib: float = LEAST_MIB


def search(status: int, said: str, **parameters: Any) -> Row:
    return Row(status, said, "POST", "/search/", lambda: json.dumps(parameters).encode(), _JSON)


def yql(said: str, where: str, **more: Any) -> Row:
    return search(400, said, yql=WHERE + where, timeout="20s", **more)


def update(said: str, **members: Any) -> Row:
    return Row(400, said, "PUT", DOCUMENT, lambda: json.dumps({"fields": {}, **members}).encode(), _JSON)


def document(status: int, said: str, body: Callable[[], bytes], headers: Mapping[str, str] = _JSON, **more: Any) -> Row:
    return Row(status, said, "POST", DOCUMENT, body, headers, **more)


def deploy(status: int, said: str, body: Callable[[], bytes], headers: Mapping[str, str] = ZIP, **more: Any) -> Row:
    return Row(status, said, "POST", _DEPLOY, body, headers, of_config=True, **more)


def bomb(size: int) -> bytes:
    """So many zeros as gzip: the blocks of one MiB again and again, since each begins without what came before."""
    zeros, check = bytes(1 << 20), 0
    squeeze = zlib.compressobj(9, wbits=-15)
    blocks = squeeze.compress(zeros) + squeeze.flush(zlib.Z_FULL_FLUSH)
    for _ in range(size >> 20):
        check = isal_zlib.crc32(zeros, check)
    head, end = gzip.compress(b"")[:10], squeeze.flush()
    return head + blocks * (size >> 20) + end + struct.pack("<II", check, size & 0xFFFFFFFF)


def zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def zip_with(**more: bytes) -> bytes:
    """The application with other files, in whose names `__` is a slash and `_dot_` a dot."""
    return zipped({**FILES, **{name.replace("__", "/").replace("_dot_", "."): each for name, each in more.items()}})


def zip_with_link() -> bytes:
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    return buffer.getvalue()


def lying_zip() -> bytes:
    """An entry of 300 MB that says it has ten bytes."""
    archive = zipped({"big.txt": bytes(300 << 20)})
    return archive.replace((300 << 20).to_bytes(4, "little"), (10).to_bytes(4, "little"))


def tar_of_many() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as archive:
        for number in range(limits.PACKAGE_FILES + 1):
            archive.addfile(tarfile.TarInfo(f"f{number}"))
    return buffer.getvalue()


def entities() -> bytes:
    """Ten times ten times ten …"""
    lines = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    return f'<!DOCTYPE x [<!ENTITY a0 "lol">{lines}]><services>&a9;</services>'.encode()


def other_schema(body: str) -> bytes:
    text = f"schema b {{ document b {{ field a type int {{ indexing: attribute }} }} {body} }}"
    return zip_with(schemas__b_dot_sd=text.encode())


def form_of(*parts: bytes) -> bytes:
    return b"".join(b"--b\r\n" + part + b"\r\n" for part in parts) + b"--b--\r\n"


def cbor_of(head: bytes, size: int, width: int = 8) -> Callable[[], bytes]:
    """An item that says it has `size` bytes or members, and ends."""
    return lambda: head + size.to_bytes(width, "big")


MANY: Final = limits.QUERY_PARAMETERS + 1
ROWS: Final[dict[str, Row]] = {
    # heads and addresses
    "a long header": Row(431, "65536 bytes", "GET", "/search/", headers={"X": "a" * 70_000}),
    "many headers": Row(431, "at most 100", "GET", "/search/", headers={f"X-{n}": "a" for n in range(101)}),
    "a long address": Row(414, "65536", "GET", f"/search/?yql={'a' * 70_000}"),
    "a long id": Row(414, "65536", "GET", f"/document/v1/ns/item/docid/{'a' * 70_000}"),
    "a long address for the config server": Row(414, "65536", "GET", f"/{'a' * 70_000}", of_config=True),
    "many parameters": Row(400, "QUERY_PARAMETERS", "GET", f"/search/?{'&'.join('a' for _ in range(MANY + 1))}"),
    "an Accept header of thousands": Row(
        400, "4096 characters", "GET", f"{_VISIT}true&stream=true", headers={"Accept": "a/b," * 2000}
    ),
    # bodies
    "many parameters in JSON": search(400, "QUERY_PARAMETERS", **{f"p{n}": 1 for n in range(MANY)}),
    "many parameters in a form": Row(
        400, "QUERY_PARAMETERS", "POST", "/search/", lambda: b"&".join(b"p%d=1" % n for n in range(MANY + 1)), _FORM
    ),
    "many escapes in a form": Row(
        400, "at most 500000", "POST", "/search/", lambda: b"yql=" + b"%41" * (limits.HTTP_ESCAPES + 1), _FORM
    ),
    "a gzip bomb as a document": document(413, "limit 104857600 bytes", lambda: bomb(1 << 30), _GZIP, most_mib=260),
    "a gzip bomb as a query": Row(413, "limit 16777216 bytes", "POST", "/search/", lambda: bomb(1 << 30), _GZIP),
    "a gzip bomb in a gzip bomb": document(
        413,
        "limit 104857600 bytes",
        lambda: gzip.compress(bomb(1 << 30)),
        {**_JSON, "Content-Encoding": "gzip, gzip"},
        most_mib=260,
    ),
    "millions of values": document(
        413, "JSON_VALUES", lambda: gzip.compress(b'{"fields":{"tags":[' + b'"",' * 4_000_001 + b'""]}}', 1), _GZIP
    ),
    "millions of values in a query": Row(
        400, "JSON_VALUES", "POST", "/search/", lambda: gzip.compress(b'{"x":[' + b"1," * 4_000_001 + b"1]}", 1), _GZIP
    ),
    "a deep document": document(400, "deeper than 1024 levels", lambda: b'{"fields":{"tags":' + b"[" * 500_000),
    "a deep query": Row(400, "deeper than 1024 levels", "POST", "/search/", lambda: b'{"a":' * 200_000, _JSON),
    "a query of groups in groups": Row(
        400, "deeper than 32 levels", "POST", "/search/", lambda: b'{"a":' * 34 + b"1" + b"}" * 34, _JSON
    ),
    "a number of a million digits": document(
        400, "For input string", lambda: b'{"fields":{"numbers":[' + b"9" * 1_000_000 + b"]}}"
    ),
    # CBOR
    "a large body of CBOR": document(413, "CBOR_BODY_BYTES", lambda: cbor2.dumps(bytes(limits.CBOR_BODY_BYTES)), _CBOR),
    "an array of 2^63": document(400, "not CBOR", cbor_of(b"\x9b", 2**63), _CBOR),
    "a map of 2^40": document(400, "not CBOR", cbor_of(b"\xbb", 2**40), _CBOR),
    "a text of 2^40": document(400, "not CBOR", cbor_of(b"\x7b", 2**40), _CBOR),
    "bytes of 2^31": document(400, "not CBOR", cbor_of(b"\x5a", 2**31, 4), _CBOR),
    "deep arrays of CBOR": document(400, "depth (200)", lambda: b"\x81" * 500_000 + b"\x00", _CBOR),
    "deep arrays without an end": document(400, "depth (200)", lambda: b"\x9f" * 500_000, _CBOR),
    "deep tags": document(400, "depth (200)", lambda: b"\xc6" * 500_000 + b"\x00", _CBOR),
    "a decimal of two billion digits": document(400, "tag 4", lambda: bytes.fromhex("a16161c4821a7fffffff01"), _CBOR),
    "a float of two billion bits": document(400, "tag 5", lambda: bytes.fromhex("a16161c5821a7fffffff01"), _CBOR),
    "a value that is within itself": document(400, "tag 29", lambda: bytes.fromhex("d81c81d81d00"), _CBOR),
    "a regular expression in CBOR": document(400, "tag 35", lambda: b"\xa1\x61a\xd8\x23\x66(a+)+$", _CBOR),
    "an integer of a million bytes": document(
        400, "too large", lambda: b"\xa1\x61a\xc2\x5a" + (10**6).to_bytes(4, "big") + b"\xff" * 10**6, _CBOR
    ),
    "a key of a million bytes": document(
        400, "too large", lambda: b"\xa1\xc2\x5a" + (10**6).to_bytes(4, "big") + b"\xff" * 10**6 + b"\x00", _CBOR
    ),
    "a key of a query": Row(
        400, "too large", "POST", "/search/", lambda: b"\xa1\xc2\x59\x20\x00" + b"\xff" * 8192 + b"\x00", _CBOR
    ),
    "a key for the config server": Row(
        400,
        "too large",
        "PUT",
        "/application/v2/tenant/t",
        lambda: b"\xa1\xc2\x59\x20\x00" + b"\xff" * 8192 + b"\x00",
        _CBOR,
        of_config=True,
    ),
    # documents
    "many places": update(
        "at most 10000", fields={f"properties{{{n}}}": {"assign": ""} for n in range(limits.UPDATE_PLACES + 1)}
    ),
    "many walks": update("at most 100", fields={f"numbers[$x{n}]": {"increment": 1} for n in range(101)}),
    "a long condition": update("at most 65536", condition="item.word == 'a' or " * 5000 + "true"),
    "a deep condition": update("deeper than 100 levels", condition="(" * 5000 + "true" + ")" * 5000),
    "a deep condition of nots": update("deeper than 100 levels", condition="not " * 5000 + "true"),
    "many patterns in a condition": update(
        "more than 100 regular expressions", condition=" or ".join(f"item.word =~ 'a{n}'" for n in range(101))
    ),
    "a pattern of a pattern": update("not a regular expression", condition="item.word =~ '((a{100}){100}){100}'"),
    "a deep predicate": update("deeper than 50", fields={"who": {"assign": "(" * 100 + "a in ['b']" + ")" * 100}}),
    "a dimension that is not there": document(
        400,
        "index 4294967296 is not in dimension d[4]",
        lambda: b'{"fields":{"dense":{"cells":[{"address":{"d":"4294967296"},"value":1}]}}}',
    ),
    "a trace level of 10": Row(400, "from 0 to 9", "GET", f"{DOCUMENT}?tracelevel=10"),
    "a concurrency of 1025": Row(400, "at most 1024", "GET", f"{_VISIT}true&concurrency=1025"),
    "a visit with many patterns": Row(
        400,
        "more than 100 regular expressions",
        "GET",
        _VISIT + quote(" or ".join(f"item.word =~ 'a{n}'" for n in range(101))),
    ),
    # queries
    "a long statement": yql("at most 1048576", f"title contains '{'a' * (1 << 20)}'"),
    "many items": yql(
        "Configured limit: 10000", " or ".join(f"title contains 'w{n}'" for n in range(limits.QUERY_ITEMS + 1))
    ),
    "deep conditions": yql("deeper than 200 levels", "(" * 5000 + "true" + ")" * 5000),
    "deep annotations": yql("deeper than 200 levels", "{a:" * 300 + "1" + "}" * 300 + "true"),
    "a long term": yql("at most 100000", f"title contains '{'a ' * 60_000}'"),
    "a long pattern": yql("at most 65536 characters", f"word matches '{'a' * 65_537}'"),
    "a pattern of patterns": yql("invalid repetition size", "word matches '((a{100}){100}){100}'"),
    "a pattern that takes memory": yql("no regular expression", f"word matches '{'(.{1000})' * 100}'"),
    "a long fuzzy term": yql("1024", f"word contains ({{maxEditDistance:2}}fuzzy('{'a' * 1025}'))"),
    "a long query": search(400, "at most 1048576", yql=f"{WHERE}userQuery()", query="a " * 600_000),
    "a query of many words": search(
        400, "Configured limit: 10000", timeout="20s", query=" ".join(f"w{n}" for n in range(20_000))
    ),
    "many hits": yql("configured limit: 400", "true", hits=401),
    "more hits than numbers": yql("must be an integer", "true", hits=10**30),
    "a far offset": yql("configured limit: 1000", "true", offset=1001),
    "a high limit in YQL": yql("max hits allowed is 400", "true limit 2000000000"),
    "many collapses": yql("at most 100", "true", collapsefield=",".join(f"f{n}" for n in range(101))),
    "many keys of sorting": yql("more than 100 keys", "true", sorting=" ".join(["+numbers"] * 101)),
    "many keys of order by": yql("at most 100", f"true order by {', '.join(['numbers'] * 101)}"),
    "a long sorting": yql("at most 65536", "true", sorting=f"+{'a' * 65_537}"),
    "a soft timeout beyond the time": yql("from 0 to 1", "true", **{"ranking.softtimeout.factor": 1.5}),
    "an input of a billion cells": yql(
        "not in dimension d[4]", "true", ranking="vectors", **{"input.query(v)": "{{d:999999999}:1}"}
    ),
    "a literal of many cells": yql(
        "FIELD_TENSOR_CELLS", "true", **{"ranking.matchFeatures.expression": "tensor(x[1000000],y[1000000]):{}"}
    ),
    "deep groups": yql(
        "deeper than 30 levels", "true | all(" + "group(numbers) each(" * 40 + "output(count())" + ")" * 41
    ),
    "many groups": yql("grouping.globalMaxGroups", "true | all(group(numbers) max(2000000000) each(output(count())))"),
    "deep conditions in JSON": Row(
        400,
        "Recursion limit",
        "POST",
        "/search/",
        lambda: b'{"select":{"where":' + b'{"not":[' * 400 + b"true" + b"]}" * 400 + b"}}",
        _JSON,
    ),
    # packages
    "a zip bomb": deploy(400, "200 times the size", lambda: zip_with(big=bytes(300 << 20))),
    "a zip that lies": deploy(400, "damaged", lying_zip),
    "a zip of many files": deploy(
        400, "more than 10000 files", lambda: zipped({f"f{n}": b"" for n in range(limits.PACKAGE_FILES + 1)})
    ),
    "a path that leads outside": deploy(400, "not allowed", lambda: zipped({"../../x": b""})),
    "a path from the root": deploy(400, "not allowed", lambda: zipped({"/etc/x": b""})),
    "a long path": deploy(400, "longer than 1024 bytes", lambda: zipped({"a/" * 600 + "x": b""})),
    "a link": deploy(400, "neither a file nor a folder", zip_with_link),
    "a tar bomb": deploy(400, "200 times the size", lambda: bomb(2 << 30), _TAR),
    "a tar of many files": deploy(400, "more than 10000 files", tar_of_many, _TAR),
    "entities of entities": deploy(412, "entities are not allowed", lambda: zipped({"services.xml": entities()})),
    "an entity from a file": deploy(
        412,
        "entities are not allowed",
        lambda: zipped(
            {"services.xml": b'<!DOCTYPE s [<!ENTITY x SYSTEM "file:///etc/passwd">]><services>&x;</services>'}
        ),
    ),
    "entities in a query profile": deploy(
        412, "entities are not allowed", lambda: zip_with(**{"search__query-profiles__default_dot_xml": entities()})
    ),
    "deep elements": deploy(412, "deeper than 64", lambda: zipped({"services.xml": b"<a>" * 200_000})),
    "many elements": deploy(
        412, "More than 4194304 bytes", lambda: zipped({"services.xml": b"<s>" + b"<x/>" * 2_000_000 + b"</s>"})
    ),
    "a deep expression": deploy(
        412,
        "deeper than 200 levels",
        lambda: other_schema(f"rank-profile p {{ first-phase {{ expression: {'(' * 5000}1{')' * 5000} }} }}"),
    ),
    "a long schema": deploy(412, "at most 4194304", lambda: other_schema(f"#{'#' * 5_000_000}\n")),
    "a field of many cells": deploy(
        412,
        "FIELD_TENSOR_CELLS",
        lambda: zip_with(
            schemas__b_dot_sd=b"schema b { document b { field t type tensor(x[2147483647],y[2147483647]) {} } }"
        ),
    ),
    "many parts of a form": deploy(
        400,
        "more than 16 parts",
        lambda: form_of(*(b'Content-Disposition: form-data; name="p%d"\r\n\r\n' % n for n in range(17))),
        _MULTIPART,
    ),
    "a deep part of a form": deploy(
        400,
        "depth limit",
        lambda: form_of(
            b'Content-Disposition: form-data; name="applicationPackage"\r\n\r\n' + zipped(FILES),
            b'Content-Disposition: form-data; name="prepareParams"\r\n\r\n' + b"[" * 100_000,
        ),
        _MULTIPART,
    ),
    "a deployment of more than a day": Row(
        400,
        "Illegal value '1000000'",
        "POST",
        f"{_DEPLOY}&timeout=1000000",
        lambda: zipped(FILES),
        ZIP,
        of_config=True,
    ),
    "a deployment without time": Row(
        408, "0.0001 seconds", "POST", f"{_DEPLOY}&timeout=0.0001", lambda: zipped(FILES), ZIP, of_config=True
    ),
    "a fast reindexing": Row(400, "from 0 to 100", "POST", f"{_APPLICATION}/reindex?speed=101", of_config=True),
    "a long name": Row(400, "1 to 60 letters", "PUT", f"/application/v2/tenant/{'a' * 61}", of_config=True),
}
"""What asks for much → how it is refused."""
ANSWERED: Final[dict[str, Row]] = {
    "a pattern that goes back and forth": search(200, "", yql=f"{WHERE}word matches '(x+x+)+y$'", timeout="20s"),
    "patterns of patterns": search(200, "", yql=f"{WHERE}word matches '(.*)(.*)(.*)(.*)[^b]*b{{50}}$'", timeout="20s"),
    "a selection that goes back and forth": Row(200, "", "GET", _VISIT + quote("item.word =~ '(a+)+$'")),
    "a glob of ten thousand stars": Row(
        412,
        "did not match",
        "PUT",
        DOCUMENT,
        lambda: json.dumps({"fields": {}, "condition": f"item.word = '{'*a' * 10_000}b'"}).encode(),
        _JSON,
    ),
    "a selection of many variables": Row(
        200, "", "GET", _VISIT + quote(" and ".join(f"item.numbers[$a{n}] == item.numbers[$b{n}]" for n in range(20)))
    ),
    "a billion target hits": search(200, "", yql=f"{WHERE}{{targetHits:2000000000}}weakAnd(title contains 'a')"),
    "a billion neighbours": search(
        200,
        "",
        yql=f"{WHERE}{{targetHits:2000000000}}nearestNeighbor(dense, v)",
        ranking="vectors",
        **{"input.query(v)": [1, 2, 3, 4]},
    ),
    "a billion hits for the second phase": search(200, "", yql=f"{WHERE}true", **{"ranking.rerankCount": 2**31 - 1}),
    "levels above the highest": search(200, "", yql=f"{WHERE}true", tracelevel=999, explainlevel=999),
    "qualities of a header": Row(
        200, "", "GET", f"/search/?yql={quote(WHERE)}true", headers={"Accept": "application/cbor" + ";q=1" * 10_000}
    ),
    "an archive in an archive": deploy(200, "", lambda: zip_with(inner_dot_zip=zipped({"a": bytes(30 << 20)}))),
}
"""What sounds like much, and is little."""
