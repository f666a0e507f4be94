"""Regular expressions that are compiled late are those of `re.compile`, and all of the package are right.

None has a possessive repeat or an atomic group: before Python 3.11.5 these match otherwise, or for minutes, where
there is a group in them (python/cpython issue 106052), and Debian 12 has 3.11.2.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest

import paperwasp
from paperwasp.base.patterns import compile_later
from paperwasp.text.parsing.tokens import Lexicon

ROOT = Path(__file__).parents[2]
FOLDERS = ("bench", "examples", "src", "tests", "tools")
USES = frozenset({"compile", *("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")})
COMPILERS = frozenset({"compile_later", "places"})


def gives_nothing_back(pattern: str | bytes) -> bool:
    """Whether there is a possessive repeat or an atomic group in an expression."""
    open_parts: list[Any] = [re._parser.parse(pattern)]  # type: ignore[attr-defined]
    while open_parts:
        part = open_parts.pop()
        if str(part) in ("POSSESSIVE_REPEAT", "ATOMIC_GROUP"):
            return True
        if isinstance(part, tuple | list | re._parser.SubPattern):  # type: ignore[attr-defined]
            open_parts += part
    return False


def expressions(code: str) -> Iterator[tuple[int, str | bytes]]:
    """Line and text of each expression that stands in the code as it is used; what is put into it is `x`."""
    for call in ast.walk(ast.parse(code)):
        match call:
            case ast.Call(ast.Attribute(ast.Name("re"), use), [given, *_]) if use in USES:
                pass
            case ast.Call(ast.Name(name), [given, *_]) if name in COMPILERS:
                pass
            case _:
                continue
        match given:
            case ast.Constant(str(text) | bytes(text)):
                yield given.lineno, text
            case ast.JoinedStr(parts):
                yield (
                    given.lineno,
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts),
                )


def test_it_does_what_the_compiled_one_does() -> None:
    text, at_once = "one two", re.compile(r"(?P<word>t\w)(o)?", re.IGNORECASE)
    uses: dict[str, tuple[Any, ...]] = {
        "match": (text, 4),
        "fullmatch": ("TWO",),
        "search": (text,),
        "sub": ("-", text),
        "subn": ("-", text),
        "split": (text,),
        "findall": (text,),
    }
    for name, arguments in uses.items():
        late = compile_later(at_once.pattern, re.IGNORECASE)
        for _ in range(2):
            found, wanted = getattr(late, name)(*arguments), getattr(at_once, name)(*arguments)
            assert str(found) == str(wanted), name
    late = compile_later(at_once.pattern, re.IGNORECASE)
    assert (late.groupindex, late.groups, late.pattern, late.flags) == (
        at_once.groupindex,
        at_once.groups,
        at_once.pattern,
        at_once.flags,
    )
    assert [each[0] for each in compile_later(rb"\w+").finditer(b"a b")] == [b"a", b"b"]


def test_a_mistake_is_found_by_the_first_use() -> None:
    mistake = "("
    late = compile_later(mistake)
    for _ in range(2):
        with pytest.raises(re.error):
            late.match("")


@pytest.mark.parametrize(
    "pattern",
    [r"\s*+a", r"a?+", "a++", "a{1,2}+", "(?>ab)", "x|(?:a(?=(b[c-]*+))|d)*", rb"(a)++", "(?P<a>a)(?P=a)*?(b|c+d?+)"],
)
def test_repeats_that_give_nothing_back_are_seen(pattern: str | bytes) -> None:
    assert gives_nothing_back(pattern)
    name = "compile_later" if isinstance(pattern, str) else "re.search"
    assert list(expressions(f"a = [{name}({pattern!r}, text)]")) == [(1, pattern)]


@pytest.mark.parametrize("pattern", [r"C\+\+", "[*+]+", r"\*+", "(a+b?)*", "a{1,2}|(?:b|c*?)+", rb"[^+]*[+]"])
def test_other_repeats_are_not_taken_for_them(pattern: str | bytes) -> None:
    assert not gives_nothing_back(pattern)


def test_no_expression_gives_nothing_back() -> None:
    found = [
        (path.relative_to(ROOT).as_posix(), line, text)
        for path in chain.from_iterable((ROOT / folder).rglob("*.py") for folder in FOLDERS)
        for line, text in expressions(path.read_text())
    ]
    assert len(found) > 300
    assert [(path, line) for path, line, text in found if gives_nothing_back(text)] == []


def test_all_expressions_of_the_package_are_right() -> None:
    """Those of lexicons and those that are made of others, too."""
    count = 0
    for module in walk_packages([str(Path(paperwasp.__file__).parent)], "paperwasp."):
        if module.name.endswith("__main__") or module.name.startswith("paperwasp.testing"):
            continue
        for value in vars(import_module(module.name)).values():
            if isinstance(value, Lexicon):
                value = value._pattern
            if type(value).__module__ == "paperwasp.base.patterns" or isinstance(value, re.Pattern):
                assert not gives_nothing_back(value.pattern), (module.name, value.pattern)
                count += 1
    assert count > 200
