"""Regular expressions that are compiled late are those of `re.compile`, and all of the package are right."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest

import paperwasp
from paperwasp.patterns import compile_later


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
    late = compile_later("(")
    for _ in range(2):
        with pytest.raises(re.error):
            late.match("")


def test_all_expressions_of_the_package_are_right() -> None:
    count = 0
    for module in walk_packages([str(Path(paperwasp.__file__).parent)], "paperwasp."):
        if module.name.endswith("__main__") or module.name.startswith("paperwasp.testing"):
            continue
        for value in vars(import_module(module.name)).values():
            if type(value).__module__ == "paperwasp.patterns":
                assert value.pattern is not None
                count += 1
    assert count > 200
