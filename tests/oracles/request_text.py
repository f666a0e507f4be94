"""The plain twin of `core/http/request_text.cpp`: what its functions find, by the readers of the standard library."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote_to_bytes

_USER_INPUT = re.compile(r"userInput(?:\(|%28)(?:@|%40)([A-Za-z0-9_.-]+)(?:\)|%29)")
_BROKEN = re.compile("%(?![0-9a-fA-F]{2})")
_PLAIN = re.compile(rb"[ -~]*")
_INPUT = re.compile(r"input\.query(?:\(|%28)")
_VECTOR = re.compile(r"\[|%5B")
_LENGTH = re.compile(rb"content-length: (\d+)")
_REFERENCE = "ref:"


def cut_query_string(query: str) -> tuple[str, str, bytes] | None:
    """(the rest, the text, the vector) of a query string, one of which may be empty; None where there is neither, or
    what there is may mean something else."""
    parts = [part.partition("=") for part in query.split("&")]
    of_query, named = (
        [(place, value) for place, (name, _, value) in enumerate(parts) if name == wanted]
        for wanted in ("query", _name_of_input(query))
    )
    vectors = [
        (place, value) for place, (name, _, value) in enumerate(parts) if _INPUT.match(name) and _VECTOR.match(value)
    ]
    texts = of_query or named
    if max(len(texts), len(vectors)) != 1 or len(named) > 1 or any(not value for _, value in (*texts, *named)):
        return None
    found = [_decoded(chosen[0][1] if chosen else "") for chosen in (texts, vectors)]
    cut = {place for place, _ in (*texts, *vectors)}
    rest = "&".join([name + sign + ("" if place in cut else value) for place, (name, sign, value) in enumerate(parts)])
    text, vector = found
    return None if text is None or vector is None else (rest, text.decode(), vector)


def _name_of_input(request: str) -> str:
    """The name in the only `userInput(@name)`, perhaps with signs as URLs have them; else that of the text itself."""
    names = _USER_INPUT.findall(request)
    return names[0] if len(names) == 1 else "query"


def _decoded(value: str) -> bytes | None:
    text = unquote_to_bytes(value.replace("+", " "))
    return None if _BROKEN.search(value) or not _PLAIN.fullmatch(text) else text


def cut_json(body: bytes) -> tuple[bytes, str, bytes] | None:
    """The same of a whole JSON object, written without spaces."""
    members = json.loads(body, object_pairs_hook=tuple)
    if any(b"\\" in _written(name) for name, _ in members):
        return None
    input_name = _name_of_input(body.decode())
    of_query, named = ([member for member in members if member[0] == wanted] for wanted in ("query", input_name))
    texts = of_query or named
    vectors = [value for name, value in members if _INPUT.match(name) and _is_vector(value)]
    if max(len(texts), len(vectors)) != 1 or len(named) > 1:
        return None
    if any(type(text) is not str or not text or b"\\" in _written(text) for _, text in (*texts, *named)):
        return None
    if any(type(vector) is list and any(isinstance(cell, str | list | tuple) for cell in vector) for vector in vectors):
        return None
    written = [_written(value).decode() for value in vectors]
    vector = written[0].strip('"') if written else ""
    name, text = texts[0] if texts else ("", "")
    if not _PLAIN.fullmatch(text.encode()) or "\\" in vector:
        return None
    rest = body
    if texts:
        start = f'"{name}":"'.encode()
        before, after = rest.split(start + text.encode() + b'"', 1)
        rest = before + start + b'"' + after
    if vectors:
        rest = re.sub(rb'("input\.query\([^"]*":"?)' + re.escape(vector.encode()), rb"\1", rest, count=1)
    return rest, text, vector.encode()


def _is_vector(value: object) -> bool:
    return type(value) is list or (isinstance(value, str) and value.startswith("["))


def _written(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def cut_whole_request(request: bytes) -> tuple[bytes, str, bytes] | None:
    """The same of a request of HTTP/1.1 that is right, and written as usual; None: it has neither, or is not whole, or
    more than one."""
    head, end, body = request.partition(b"\r\n\r\n")
    line, _, fields = head.partition(b"\r\n")
    method, target, _ = line.decode("latin-1").split(" ")
    if method == "GET" and not body:
        path, _, query = target.partition("?")
        found = cut_query_string(query)
        if found is None or found[1].startswith(_REFERENCE):
            return None
        return f"GET {path}?{found[0]} HTTP/1.1\r\n".encode() + fields + end, *found[1:]
    lengths = _LENGTH.findall(fields)
    if method != "POST" or len(lengths) != 1 or int(lengths[0]) != len(body):
        return None
    found_in_body = cut_json(body)
    if found_in_body is None or found_in_body[1].startswith(_REFERENCE):
        return None
    return line + b"\r\n" + _LENGTH.sub(b"content-length: ", fields) + end + found_in_body[0], *found_in_body[1:]
