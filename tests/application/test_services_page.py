"""docs/reference/services.md has every element of the tables: the block in it is made from them.

To write it anew: `PAPERWASP_WRITE_SCRIPTS=1 pytest tests/application/test_services_page.py`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from paperwasp.application.elements import RULES
from paperwasp.application.grammar import Rule, Use
from paperwasp.application.services_container import EXTENSION_TAGS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "services.md"
VESPA = Path(__file__).parent / "vespa_services.txt"
SAID = {
    Use.USED: "executed",
    Use.NOTED: "without effect",
    Use.PENDING: "not executed yet",
    Use.REFUSED: "refused",
}
MARKS = {Use.USED: "", Use.NOTED: "°", Use.PENDING: "*", Use.REFUSED: "!"}
LONGEST_LINE = 120


OWN_BLOCKS = ("component", "container", "content", "admin", "routing", "hosts")
EVERYWHERE = "config"
"""Is in too many places to be shown in each."""


@pytest.mark.parametrize("root", OWN_BLOCKS)
def test_every_element_is_on_the_page(root: str) -> None:
    block = "\n".join(lines(root, RULES[root]))
    text = PAGE.read_text()
    pattern = re.compile(rf"(```text\n)({root} [^`]*)(```)")
    found = pattern.search(text)
    assert found is not None
    if os.environ.get("PAPERWASP_WRITE_SCRIPTS"):
        PAGE.write_text(text[: found.start(2)] + block + "\n" + text[found.end(2) :])
        found = pattern.search(PAGE.read_text())
        assert found is not None
    assert found[2] == block + "\n"


def described(path: str) -> Rule:
    """The rule of the element at a path, or of a component of a type (`component=bert-embedder`)."""
    root, *below = path.split("/")
    name, _, kind = root.partition("=")
    rule = RULES[name].types[kind] if kind else RULES[name]
    for tag in below:
        if rule.is_open or rule.use is Use.REFUSED:
            break
        rule = rule.children[tag]
    return rule


@pytest.mark.parametrize("line", VESPA.read_text().splitlines()[2:])
def test_the_tables_have_what_vespa_reads(line: str) -> None:
    path, _, names = line.partition(": ")
    rule = described(path)
    known = {*rule.children, *(f"@{name}" for name in rule.attributes)}
    unknown = [name for name in names.split() if name not in known]
    assert unknown == [] or rule.is_open or rule.use is Use.REFUSED


def lines(
    tag: str, rule: Rule, depth: int = 0, parent: str = "", said: str = "", seen: set[int] | None = None
) -> Iterator[str]:
    """A line for the element, and one for everything in it. What is in one that is not executed shares its lot."""
    seen = set() if seen is None else seen
    is_component = tag in EXTENSION_TAGS and parent != "http"
    own = "as its class or type" if is_component else SAID[rule.use]
    line = f"{'  ' * depth + tag:<40} {'' if said else own:<20}"
    if depth and any(rule is RULES[name] for name in OWN_BLOCKS):
        yield f"{line} see its own block"
        return
    if id(rule) in seen and len(rule.children) > 1:
        yield f"{line} see above"
        return
    seen.add(id(rule))
    yield from wrapped(line, [name + MARKS[attribute.use] for name, attribute in rule.attributes.items()])
    shared = said or (own if is_component or rule.use is not Use.USED else "")
    inside = [(f'type="{kind}"', typed) for kind, typed in rule.types.items()]
    inside += [(name, child) for name, child in rule.children.items() if name != EVERYWHERE]
    for name, child in inside:
        yield from lines(name, child, depth + 1, tag, shared, seen)


def wrapped(start: str, words: list[str]) -> Iterator[str]:
    line = start
    for word in words:
        if len(line) + len(word) + 1 > LONGEST_LINE:
            yield line.rstrip()
            line = " " * len(start)
        line += f" {word}"
    yield line.rstrip()
