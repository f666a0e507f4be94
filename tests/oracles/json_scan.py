"""The plain twin of core/documents/json_scan.cpp, which says what it computes: slow, character by character."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from paperwasp.base.patterns import compile_later
from paperwasp.text.large_json import BEGIN_ARRAY, END, NAME, RUN, TEXT, TEXT_END

_TOKEN: Final = compile_later(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)


def count_values(text: bytes) -> int:
    """Numbers, strings, names, arrays and objects, and the three words, of JSON that is right."""
    return sum(token not in "]},:" for token in _TOKEN.findall(text.decode()))


def build_from_steps(text: bytes, steps: list[int]) -> Any:
    """The value that the steps of a scan lead to."""
    numbers = iter(steps)
    return _build(text, zip(numbers, numbers, numbers, strict=True))


def _build(text: bytes, steps: Iterator[tuple[int, int, int]], begun: int | None = None) -> Any:
    if begun is None:
        begun, _, _ = next(steps)
    array: list[Any] = []
    members: dict[str, Any] = {}
    name = text_before = ""
    for kind, start, end in steps:
        piece = text[start:end].decode()
        if kind == END:
            break
        if kind == NAME:
            name = json.loads(piece)
        elif kind == TEXT:
            text_before += json.loads(f'"{piece}"')
        elif kind == TEXT_END and begun == BEGIN_ARRAY:
            array.append(text_before + json.loads(f'"{piece}"'))
            text_before = ""
        elif kind == TEXT_END:
            members[name] = text_before + json.loads(f'"{piece}"')
            text_before = ""
        elif kind == RUN and begun == BEGIN_ARRAY:
            array += json.loads(f"[{piece}]")
        elif kind == RUN:
            members |= json.loads(f"{{{piece}}}")
        elif begun == BEGIN_ARRAY:
            array.append(_build(text, steps, kind))
        else:
            members[name] = _build(text, steps, kind)
    return array if begun == BEGIN_ARRAY else members
