"""Values of requests: what a schema allows, what is next to that, and what is hostile."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

TEXTS: Final = (
    *("", " ", "x", "0", "-1", "true", "null", "NaN", "Infinity", "-0", "1e999", "1e-999", "0x10", "١٢", "½", "+1"),
    *("9223372036854775807", "-9223372036854775808", "18446744073709551616", "9" * 400, "0." + "1" * 400, "1_000"),
    *("'", '"', "\\", "`", ";", "--", "{", "}", "[", "]", "(", ")", "<", ">", "&", "|", "%", "%00", "%s%n", "${x}"),
    *("../../etc/passwd", "/", "//", "a/b", ".", "..", "a:b", "id:n:music::1", "id:::", "*", "?", "#", "@", "!"),
    *("\x00", "\n", "\r\n", "\t", "\x1b[0m", "\x7f", "\u0085", "\u2028", "\ufeff", "\ufffd", "\ud7ff", "\ue000"),
    *("é", "e\u0301", "ß", "İ", "ﬁ", "日本語", "𝄞", "👩‍👩‍👧", "\U0010ffff", "\u05d0", "\u0627", "\u202e", "a\u200bb"),
    *("(" * 300, "[" * 300, "{" * 300, "a" * 5000, "a " * 3000, "é" * 3000, "!" * 500, "-" * 500, "\\" * 501),
    *("(a+)+$", "(a|a)*b", "a{1000}{1000}", "[[:alpha:]]*", ".*.*.*.*x", "(?P<x>", "\\1", "^(([a-z])+.)+[A-Z]$"),
    *("now()", "true or", "music.year >", "tensor(x[3]):[1,2,3]", "tensor(x{}):{a:1}", "tensor(x[2147483647])"),
    *("tensor(x[1000000],y[1000000]):{}", "{{x:0}:1}", "[1,2,3]", '{"cells":[]}', "[[[[[[1]]]]]]", "<a>&b;</a>"),
)
_NUMBERS: Final = (
    *(0, 1, -1, 2, 9, 10, 100, 255, 256, 1000, 1023, 65_535, 65_536, 10**6, 2**31 - 1, 2**31, -(2**31), 2**32),
    *(2**53, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**64, 10**30, 0.1, -0.5, 1.5, 1e308, 1e-308, 1e15),
)
_DURATIONS: Final = ("1", "0.1s", "100ms", "500 ms", "1s", "0", "0.0001ms", "10µs", "0.001ks", "2s")
_TOKEN: Final = re.compile(r"\w+|\s+|[^\w\s]")


def text(chance: random.Random) -> str:
    """A hostile text, or a random one."""
    kind = chance.random()
    if kind < 0.7:
        return chance.choice(TEXTS)
    if kind < 0.8:
        return chance.choice(TEXTS) + chance.choice(TEXTS)
    return "".join(chr(character(chance)) for _ in range(chance.randrange(20)))


def character(chance: random.Random) -> int:
    """A code point that is no half of a pair."""
    return chance.choice((chance.randrange(128), chance.randrange(0xD800), chance.randrange(0xE000, 0x110000)))


def number(chance: random.Random) -> int | float:
    """A number near a bound of something."""
    return chance.choice(_NUMBERS)


def of_schema(schema: Mapping[str, Any], chance: random.Random) -> str:
    """A value that a schema allows, as text."""
    if "const" in schema:
        return str(schema["const"]).lower()
    if "enum" in schema:
        return str(chance.choice(schema["enum"]))
    kind = schema.get("type", "string")
    if kind == "boolean":
        return chance.choice(("true", "false"))
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", -10), schema.get("maximum", 100)
        value = chance.choice((low, high, min(high, low + 1), chance.randint(0, 20), schema.get("default", low)))
        return str(value if kind == "integer" or chance.random() < 0.5 else chance.random())
    if schema.get("examples"):
        return chance.choice(_DURATIONS)
    return str(schema.get("default", chance.choice(TEXTS)))


def beside_schema(schema: Mapping[str, Any], chance: random.Random) -> str:
    """A value that is next to what a schema allows."""
    if schema.get("type") in ("integer", "number"):
        near = [schema[name] + step for name in ("minimum", "maximum") if name in schema for step in (-1, 1, 0.5)]
        return str(chance.choice([*near, number(chance)]))
    return mutated(of_schema(schema, chance), chance, ())


def mutated(original: str, chance: random.Random, others: Sequence[str]) -> str:
    """A text with some of its tokens left out, repeated, exchanged or replaced. `others`: texts to take pieces of."""
    tokens = _TOKEN.findall(original)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        tokens = _changed(tokens, chance, others)
    return "".join(tokens)[:20_000]


def _changed(tokens: list[str], chance: random.Random, others: Sequence[str]) -> list[str]:
    place = chance.randrange(len(tokens) + 1)
    end = min(len(tokens), place + chance.randrange(1, 6))
    piece = tokens[place:end]
    kind = chance.randrange(8)
    if kind == 0:
        return tokens[:place] + tokens[end:]
    if kind == 1:
        return tokens[:place] + piece * chance.choice((2, 3, 50)) + tokens[end:]
    if kind == 2:
        return [*tokens[:place], text(chance), *tokens[end:]]
    if kind == 3:
        return [*tokens[:place], str(number(chance)), *tokens[end:]]
    if kind == 4 and others:
        other = _TOKEN.findall(chance.choice(others))
        start = chance.randrange(len(other) + 1)
        return tokens[:place] + other[start : start + chance.randrange(1, 12)] + tokens[end:]
    if kind == 5:
        return [*tokens[:place], "(", *piece, ")", *tokens[end:]]
    if kind == 6 and piece:
        return tokens[:place] + chance.sample(piece, len(piece)) + tokens[end:]
    return [*tokens[:place], chance.choice(tokens), *tokens[end:]] if tokens else [text(chance)]


def json_value(chance: random.Random, depth: int = 0) -> Any:
    """Any JSON."""
    kind = chance.randrange(9 if depth < 4 else 6)
    if kind < 2:
        return text(chance)
    if kind < 4:
        return number(chance)
    if kind < 6:
        return chance.choice((None, True, False, 0, ""))
    if kind == 6:
        return [json_value(chance, depth + 1) for _ in range(chance.randrange(5))]
    names = ("cells", "values", "blocks", "address", "value", "lat", "lng", "assign", "add", "match", "element", "x")
    return {chance.choice((*names, text(chance))): json_value(chance, depth + 1) for _ in range(chance.randrange(4))}


def mutated_json(value: Any, chance: random.Random, share: float = 0.15) -> Any:
    """JSON with some of its parts replaced, left out, or doubled."""
    if chance.random() < share:
        return json_value(chance) if chance.random() < 0.8 else [value, value]
    if isinstance(value, dict):
        kept = {name: mutated_json(each, chance, share) for name, each in value.items() if chance.random() > share / 3}
        if chance.random() < share:
            kept[text(chance)] = json_value(chance)
        return kept
    if isinstance(value, list):
        return [mutated_json(each, chance, share) for each in value for _ in range(chance.choice((1, 1, 1, 1, 0, 2)))]
    if isinstance(value, str):
        return mutated(value, chance, ()) if chance.random() < share else value
    return number(chance) if chance.random() < share and not isinstance(value, bool) else value
