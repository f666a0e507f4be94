"""A small language for what may stand in an XML file, how a tree of elements is held against it, and the kinds of its
texts and attributes.

    container  used id:name version!:1.0 ~jvm-options
        nodes?  noted count:amount -- everything runs in this one process
        component@component
        min-redundancy?  used = copies

A line is the tag, how often it may stand there (`?` at most once, `!` exactly once, `+` at least once, otherwise any
number of times), what is made of it, its attributes, after `=` the kind of its text, and after `--` why it
has no effect or is refused. What is below it is indented by four. The kinds of values are below; an
attribute without one is any text, one with `!` is required.

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
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Final, Literal

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.application.findings import Findings
from paperwasp.application.xml import Element
from paperwasp.base.patterns import compile_later
from paperwasp.errors import Finding, Position
from paperwasp.text.parsing.tokens import did_you_mean

# The kinds of texts and attributes of services.xml: a name for each, and the values that fit it.


_LONGEST_NUMBER: Final = 24
_LONGEST_NAME_BYTES: Final = 200
"""Content clusters have folders of their name, and file systems take at most 255 bytes."""
_NAME: Final = compile_later(r"[^\W\d][\w.-]*")
_SIZE: Final = compile_later(r"([0-9]{1,12})\s*(?:([kKmMgGtT])(i?)[bB]?|[bB])?")
_SIZE_POWERS: Final = "kmgt"
_SECONDS: Final = compile_later(r"([0-9]{1,9}(?:\.[0-9]{0,9})?)\s*(ms|s)?")


class Value(Struct, frozen=True):
    """A kind of value: in words for an error, and whether a text is one."""

    description: str
    accepts: Callable[[str], bool]


def value_named(name: str) -> Value:
    """The kind of that name; `a|b` is one of the words a and b."""
    return VALUES[name] if name in VALUES else _choice(name.split("|"))


def integer(text: str) -> int | None:
    """The integer that the text is; None: it is none, or longer than any that makes sense."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else None


def number(text: str) -> float | None:
    """The finite decimal number that the text is."""
    fits = len(text) <= _LONGEST_NUMBER and re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,2})?", text)
    return float(text) if fits else None


def boolean(text: str) -> bool:
    """A text that fits `boolean` as what it means."""
    return text in ("true", "1")


def size_bytes(text: str) -> int | None:
    """`10MiB`, `10 MB`, `512`: a number of bytes. Units with an `i` are powers of 1024, others of 1000."""
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    amount, unit, binary = found.groups()
    power = _SIZE_POWERS.index(unit.lower()) + 1 if unit else 0
    return int(amount) * int((1024 if binary else 1000) ** power)


_LEAST_QUERY_MEMORY: Final = 1 << 20
QUERY_MEMORY: Final = (
    f"a size like 256MiB, from {_LEAST_QUERY_MEMORY >> 20} MiB to {limits.MOST_QUERY_MEMORY_BYTES >> 30} GiB"
)
"""The memory that a query may be given."""


def is_query_memory(size: int) -> bool:
    """Return whether a query may be given memory of this size, in bytes."""
    return _LEAST_QUERY_MEMORY <= size <= limits.MOST_QUERY_MEMORY_BYTES


def _integers(lowest: int, highest: int = 2**31 - 1) -> Value:
    def accepts(text: str) -> bool:
        found = integer(text)
        return found is not None and lowest <= found <= highest

    return Value(f"an integer from {lowest} to {highest}", accepts)


def _numbers(lowest: float, highest: float | None = None) -> Value:
    def accepts(text: str) -> bool:
        found = number(text)
        return found is not None and lowest <= found and (highest is None or found <= highest)

    return Value(f"a number from {lowest:g}" + ("" if highest is None else f" to {highest:g}"), accepts)


def _matching(description: str, pattern: str) -> Value:
    compiled = compile_later(pattern)
    return Value(description, lambda text: compiled.fullmatch(text) is not None)


def _is_name(text: str) -> bool:
    return len(text.encode()) <= _LONGEST_NAME_BYTES and _NAME.fullmatch(text) is not None


def _choice(words: list[str]) -> Value:
    listed = " or ".join(f"'{word}'" for word in words)
    return Value(listed, words.__contains__)


VALUES: Final = {
    "text": Value("a text", lambda _: True),
    "name": Value(f"a name of at most {_LONGEST_NAME_BYTES} bytes", _is_name),
    "id": _matching("an id", r"[^\s<>&\"']{1,400}"),
    "boolean": Value("'true' or 'false'", ("true", "false", "1", "0").__contains__),
    "count": _integers(0),
    "positive": _integers(1),
    "integer": _integers(-(2**31)),
    "long": _integers(-(2**62), 2**62),
    "port": _integers(0, 65_535),
    "copies": _integers(1, 65_534),
    "distribution-key": _integers(0, 65_534),
    "merge-nodes": _integers(2, 16),
    "number": _numbers(float("-1e18")),
    "from-0": _numbers(0),
    "from-1": _numbers(1),
    "from-60": _numbers(60),
    "ratio": _numbers(0, 1),
    "minimum-file-size": _numbers(0.1, 1),
    "half-percent": _numbers(0, 50),
    "amount": _matching("a positive integer or a range like [2, 4]", r"\s*([1-9][0-9]{0,8}|\[[\s0-9]*,[\s0-9]*\])\s*"),
    "size": _matching("a size like 10MiB", _SIZE.pattern),
    "rate": _matching("a number that may have a unit of k, m or g", r"[0-9]{1,12}(\.[0-9]{0,12})?\s*[kmgKMG]?"),
    "seconds": _matching("a time like 2.0 or 500ms", _SECONDS.pattern),
    "duration": _matching("a time like 1.5 h", r"[0-9.]{1,12}\s*[a-z]{0,12}"),
    "time-of-day": _matching("a time of day like 02:00", r"[0-9]{2}:[0-9]{2}"),
    "partitions": _matching("like '*' or '1|*'", r"([1-9][0-9]{0,4}\|){0,1000}\*"),
    "1.0": _choice(["1.0"]),
}
"""Name → kind of value, as the tables of the grammar name them."""


class Use(Enum):
    """How the service uses an element or attribute; see the table's language above."""

    USED = "used"
    NOTED = "noted"
    PENDING = "pending"
    REFUSED = "refused"


class Attribute(Struct, frozen=True):
    """The rule of an attribute: how it is used, and the values that it may have."""

    use: Use
    value: Value
    is_required: bool = False


class Rule(Struct):
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


# Holds a tree of elements against its grammar, and tells what is unknown, missing, wrong, or without effect.


_REPORTS: Final[Mapping[Use, tuple[Literal["ERROR", "WARNING", "INFO"], str]]] = {
    Use.NOTED: ("INFO", "has no effect"),
    Use.PENDING: ("WARNING", "is not executed yet"),
    Use.REFUSED: ("ERROR", "cannot work here"),
}
_NAMESPACE: Final = "xmlns"


class GrammarCheck(Struct, frozen=True):
    """One walk over a tree."""

    findings: Findings

    def check(self, element: Element, rule: Rule, *, quiet: bool = False) -> None:
        """Checks all that is in the element. `quiet`: reports errors only, as the element around it was reported."""
        rule = self._rule_of_type(element, rule)
        self._check_attributes(element, rule, quiet=quiet)
        if rule.is_open:
            return
        if rule.text is not None:
            self._check_value(f"'{element.tag}'", element, element.text, rule.text)
        elif element.text:
            self.findings.error(f"text is not allowed here, in '{element.tag}'", element.position)
        for tag in sorted(rule.required - {child.tag for child in element.children}):
            message = f"element '{element.tag}' incomplete; missing required element '{tag}'"
            self.findings.error(message, element.position)
        seen: set[str] = set()
        for child in element.children:
            if child.tag in rule.once & seen:
                self.findings.error(f"element '{child.tag}' is allowed only once in '{element.tag}'", child.position)
            seen.add(child.tag)
            found = rule.children.get(child.tag)
            if found is None:
                self._unknown(f"element '{child.tag}'", element, child.tag, rule.children, child.position)
            else:
                if not quiet and found.use is not Use.USED:
                    self._tell(f"element '{child.tag}' in '{element.tag}'", found.use, child.position, found.why)
                if found.use is not Use.REFUSED:
                    self.check(child, found, quiet=quiet or found.use is not Use.USED)

    def _rule_of_type(self, element: Element, rule: Rule) -> Rule:
        kind = element.attributes.get("type")
        if kind is None or not rule.types:
            return rule
        if kind not in rule.types:
            hint = did_you_mean(kind, rule.types) if self.findings.has_room else ""
            self.findings.error(f"unknown type '{kind}' of '{element.tag}'{hint}", element.position)
            return Rule(is_open=True)
        return rule.types[kind]

    def _check_attributes(self, element: Element, rule: Rule, *, quiet: bool) -> None:
        for name, attribute in rule.attributes.items():
            if attribute.is_required and name not in element.attributes:
                message = f"element '{element.tag}' missing required attribute '{name}'"
                self.findings.error(message, element.position)
        for name, text in element.attributes.items():
            if name.partition(":")[0] == _NAMESPACE:
                continue
            if name not in rule.attributes:
                if not rule.is_open:
                    self._unknown(f"attribute '{name}'", element, name, rule.attributes, element.position)
                continue
            self._check_value(f"attribute '{name}'", element, text, rule.attributes[name].value)
            if not quiet and rule.attributes[name].use is not Use.USED:
                self._tell(f"attribute '{name}' of '{element.tag}'", rule.attributes[name].use, element.position, "")

    def _check_value(self, what: str, element: Element, text: str, value: Value) -> None:
        if not value.accepts(text):
            shown = text if len(text) <= 100 else text[:100] + "…"
            message = f"value of {what} is invalid; must be {value.description}, not '{shown}'"
            self.findings.error(message, element.position)

    def _unknown(self, what: str, element: Element, word: str, known: Mapping[str, object], position: Position) -> None:
        hint = did_you_mean(word, known) if self.findings.has_room else ""
        self.findings.error(f"{what} not allowed here, in '{element.tag}'{hint}", position)

    def _tell(self, what: str, use: Use, position: Position, why: str) -> None:
        level, report = _REPORTS[use]
        self.findings.add(Finding(f"{what} {report}" + (f": {why}" if why else ""), position, level))
