"""The small language for what may stand in an XML file, and the walk over a tree with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paperwasp.application.elements import RULES
from paperwasp.application.findings import Findings
from paperwasp.application.grammar import (
    VALUES,
    GrammarCheck,
    Rule,
    Use,
    integer,
    number,
    read_grammar,
    size_bytes,
    value_named,
)
from paperwasp.application.xml import parse_xml

TABLE = """
base  used id!:name
    note  noted = text
root  used version:1.0 ~old:count >later
    one!  used = count
    some+  used = a|b
    thing@thing?
    open  noted any -- nobody reads it
    no  refused -- it cannot be
    soon  pending -- it takes time
        deep?  noted = text
thing  used
    +base
    thing@thing
thing/big  used type! size!:size
    +base
"""


def told_of(text: str) -> list[str]:
    findings = Findings()
    GrammarCheck(findings).check(parse_xml(text.encode(), ""), read_grammar(TABLE)["root"])
    return [f"{f.level} {f.message}" for f in (*findings.errors, *findings.notes)]


RIGHT = "<one>1</one><some>a</some>"
BIG = "<thing id='a' type='big' size='1kB'><note>x</note></thing>"


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        ("<some>b</some>", None),
        ("<thing id='a'><thing id='b'/></thing>", None),
        ("<one>2</one>", "ERROR element 'one' is allowed only once in 'root'"),
        ("<thing/>", "ERROR element 'thing' missing required attribute 'id'"),
        ("<some>c</some>", "ERROR value of 'some' is invalid; must be 'a' or 'b', not 'c'"),
        ("<open x='1'><y/>z</open>", "INFO element 'open' in 'root' has no effect: nobody reads it"),
        ("<no><y/></no>", "ERROR element 'no' in 'root' cannot work here: it cannot be"),
        ("<soon><deep>x</deep></soon>", "WARNING element 'soon' in 'root' is not executed yet: it takes time"),
        (BIG, "INFO element 'note' in 'thing' has no effect"),
        (BIG.replace("size", "sise"), "ERROR attribute 'sise' not allowed here, in 'thing'; did you mean 'size'?"),
        ("<thing id='a' type='bigg'/>", "ERROR unknown type 'bigg' of 'thing'; did you mean 'big'?"),
        ("text", "ERROR text is not allowed here, in 'root'"),
        ("<onne/>", "ERROR element 'onne' not allowed here, in 'root'; did you mean 'one'?"),
    ],
)
def test_what_is_told_of_elements(inside: str, told: str | None) -> None:
    found = told_of(f"<root>{RIGHT}{inside}</root>")
    assert told in found if told else not found


@pytest.mark.parametrize(
    ("attribute", "told"),
    [
        ("version='1.0' xmlns:x='y'", None),
        ("old='1'", "INFO attribute 'old' of 'root' has no effect"),
        ("later='1'", "WARNING attribute 'later' of 'root' is not executed yet"),
        ("old='x'", "ERROR value of attribute 'old' is invalid; must be an integer from 0 to 2147483647, not 'x'"),
        ("versoin='1'", "ERROR attribute 'versoin' not allowed here, in 'root'; did you mean 'version'?"),
    ],
)
def test_what_is_told_of_attributes(attribute: str, told: str | None) -> None:
    found = told_of(f"<root {attribute}>{RIGHT}</root>")
    assert told in found if told else not found


def test_what_is_missing() -> None:
    assert told_of("<root/>") == [
        "ERROR element 'root' incomplete; missing required element 'one'",
        "ERROR element 'root' incomplete; missing required element 'some'",
    ]


def rules_below(rule: Rule, seen: set[int]) -> Iterator[Rule]:
    if id(rule) not in seen:
        seen.add(id(rule))
        yield rule
        for child in (*rule.children.values(), *rule.types.values()):
            yield from rules_below(child, seen)


def test_the_tables_are_whole() -> None:
    """Every rule of the tables can be reached from a root, and an element says either a text or what is in it."""
    seen: set[int] = set()
    reached = [rule for root in ("services", "hosts", "deployment") for rule in rules_below(RULES[root], seen)]
    assert len(reached) > 300
    mixed = {name for name, rule in RULES.items() if rule.text is not None and rule.is_open}
    assert mixed == set()
    refused = [rule for rule in reached if rule.use is Use.REFUSED]
    assert refused and all(rule.why for rule in refused)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("name", ["a", "_x-1.b", "ä" * 100], ["", "1a", "a b", "-", "a/b", "..", "ä" * 101]),
        ("boolean", ["true", "0"], ["True", "yes", ""]),
        ("positive", ["1", "+2", "2147483647"], ["0", "-1", "1.0", "2147483648", "9" * 5000, "²"]),
        ("ratio", ["0", "1", ".5", "1e-3", "1."], ["1.1", "-0.1", "nan", "inf", "1e", "", "0" * 30]),
        ("amount", ["1", "[1, 2]", "[,2]", "[1,]"], ["0", "[1]", "two", "1-2"]),
        ("size", ["10", "10MiB", "1 kB", "3g", "5b"], ["", "MiB", "1.5MiB", "1 PiB"]),
        ("partitions", ["*", "1|*", "2|1|*"], ["1", "|*", "1||*", "0|*"]),
        ("time-of-day", ["02:00"], ["2:00", "02.00"]),
        ("a|b", ["a", "b"], ["c", "", "a|b"]),
    ],
)
def test_values(kind: str, right: list[str], wrong: list[str]) -> None:
    value = value_named(kind)
    assert [text for text in right if not value.accepts(text)] == []
    assert [text for text in wrong if value.accepts(text)] == []


def test_values_as_numbers() -> None:
    assert (integer("12"), integer("x"), integer("9" * 19)) == (12, None, None)
    assert (number("1e3"), number("x"), number("1e999")) == (1000.0, None, None)
    sizes = [size_bytes(text) for text in ("5", "5b", "1kB", "1 KiB", "2MiB", "1G", "1TiB", "x")]
    assert sizes == [5, 5, 1000, 1024, 2 * 1024**2, 10**9, 1024**4, None]
    assert all(value.description for value in VALUES.values())
