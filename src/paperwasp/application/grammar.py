"""A small language for what may stand in an XML file, and what is made of it: one line for each element.

    container  used id:name version!:1.0 ~jvm-options
        nodes?  noted count:amount -- everything runs in this one process
        component@component
        min-redundancy?  used = copies

A line is the tag, how often it may stand there (`?` at most once, `!` exactly once, `+` at least once, otherwise any
number of times), what is made of it, its attributes, after `=` the kind of its text, and after `--` why it
has no effect or is refused. What is below it is indented by four. The kinds of values are in
`paperwasp.application.values`; an attribute without one is any text, one with `!` is required.

* `used`: it has its effect, and what is in it is looked at by the same table.
* `noted` (attributes: `~`): it is right, but changes nothing here.
* `pending` (attributes: `>`): Vespa acts on it and paperwasp does not yet.
* `refused`: it cannot work here.

What is in an element that is not used is checked, but not reported. `any` takes everything below. `tag@name` is
the element that a line `name` without indentation describes, `+name` takes over its attributes and children, and a line
`name/type` describes the element `name` whose attribute `type` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import Enum
from typing import Final

from paperwasp.application.values import Value, value_named
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass


class Use(Enum):
    """How the service uses an element or attribute; see the table's language above."""

    USED = "used"
    NOTED = "noted"
    PENDING = "pending"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Attribute:
    """The rule of an attribute: how it is used, and the values that it may have."""

    use: Use
    value: Value
    is_required: bool = False


@dataclass(slots=True)
class Rule:
    """The rule of an element, and of all that may be in it. Filled while the table is read, never changed later."""

    use: Use = Use.USED
    attributes: dict[str, Attribute] = field(default_factory=dict)
    children: dict[str, Rule] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    """Children that must stand there."""
    once: set[str] = field(default_factory=set)
    """Children that may stand there only once."""
    types: dict[str, Rule] = field(default_factory=dict)
    """Value of the attribute `type` → the rule to use instead."""
    text: Value | None = None
    is_open: bool = False
    """Whether everything may be in it."""
    why: str = ""


_LINE: Final = compile_later(
    r"(?P<indent> *)(?P<tag>\+?[\w./-]+)(@(?P<shared>[\w-]+))?(?P<often>[?!+])?(?P<rest>\s.*)?"
)
_REST: Final = compile_later(r"(?P<words>.*?)(\s=\s+(?P<text>\S+))?(\s--\s(?P<why>.*))?")
_ATTRIBUTE: Final = compile_later(r"(?P<use>[~>]?)(?P<name>[\w-]+)(?P<required>!?)(:(?P<value>\S+))?")
_ATTRIBUTE_USES: Final = {"": Use.USED, "~": Use.NOTED, ">": Use.PENDING}
_USES: Final = {use.value: use for use in Use}
_ANY: Final = "any"
_INDENT: Final = 4


def read_grammar(*tables: str) -> Mapping[str, Rule]:
    """Name → rule, for every line without indentation in the tables. `@name` may come before the line, `+name` not."""
    lines = [found for table in tables for found in _lines(table)]
    rules = {found["tag"]: Rule() for found in lines if not found["indent"]}
    above: list[Rule] = []
    for found in lines:
        depth = len(found["indent"]) // _INDENT
        del above[depth:]
        rule = _place(found, above[-1] if above else None, rules)
        _describe(rule, found["rest"] or "")
        above.append(rule)
    for name in [name for name in rules if "/" in name]:
        element, _, kind = name.partition("/")
        rules[element].types[kind] = rules[name]
    return rules


def _lines(table: str) -> Iterator[re.Match[str]]:
    for line in table.splitlines():
        if line.strip():
            found = _LINE.fullmatch(line)
            assert found is not None, line
            yield found


def _place(found: re.Match[str], parent: Rule | None, rules: Mapping[str, Rule]) -> Rule:
    """The rule that the line describes, set in its place."""
    tag = found["tag"]
    if parent is None:
        return rules[tag]
    if tag.startswith("+"):
        taken = rules[tag[1:]]
        parent.attributes |= taken.attributes
        parent.children |= taken.children
        parent.once |= taken.once
        parent.required |= taken.required
        return parent
    rule = rules[found["shared"]] if found["shared"] else Rule()
    parent.children[tag] = rule
    if found["often"] in ("!", "+"):
        parent.required.add(tag)
    if found["often"] in ("!", "?"):
        parent.once.add(tag)
    return rule


def _describe(rule: Rule, rest: str) -> None:
    described = _REST.fullmatch(rest)
    assert described is not None
    for word in described["words"].split():
        if word in _USES:
            rule.use = _USES[word]
        elif word == _ANY:
            rule.is_open = True
        else:
            found = _ATTRIBUTE.fullmatch(word)
            assert found is not None, word
            value = value_named(found["value"] or "text")
            rule.attributes[found["name"]] = Attribute(_ATTRIBUTE_USES[found["use"]], value, bool(found["required"]))
    if described["text"]:
        rule.text = value_named(described["text"])
    if described["why"]:
        rule.why = described["why"]
