"""Holds a tree of elements against its grammar, and tells what is unknown, missing, wrong, or without effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from paperwasp.application.findings import Findings
from paperwasp.application.grammar import Rule, Use
from paperwasp.application.values import Value
from paperwasp.application.xml import Element
from paperwasp.base.records import dataclass
from paperwasp.errors import Finding, Position
from paperwasp.text.parsing.nearest import did_you_mean

_REPORTS: Final[Mapping[Use, tuple[Literal["ERROR", "WARNING", "INFO"], str]]] = {
    Use.NOTED: ("INFO", "has no effect"),
    Use.PENDING: ("WARNING", "is not executed yet"),
    Use.REFUSED: ("ERROR", "cannot work here"),
}
_NAMESPACE: Final = "xmlns"


@dataclass(frozen=True, slots=True)
class GrammarCheck:
    """One walk over a tree."""

    findings: Findings

    def check(self, element: Element, rule: Rule, *, quiet: bool = False) -> None:
        """Checks all that is in the element. `quiet`: reports errors only, as the element around it was reported."""
        rule = self._rule_of_type(element, rule)
        self._check_attributes(element, rule, quiet=quiet)
        if rule.is_open:
            return
        self._check_text(element, rule)
        self._check_missing(element, rule)
        seen: set[str] = set()
        for child in element.children:
            if child.tag in rule.once & seen:
                self.findings.error(f"element '{child.tag}' is allowed only once in '{element.tag}'", child.position)
            seen.add(child.tag)
            found = rule.children.get(child.tag)
            if found is None:
                self._unknown(f"element '{child.tag}'", element, child.tag, rule.children, child.position)
            else:
                self._check_child(element, child, found, quiet=quiet)

    def _check_child(self, element: Element, child: Element, rule: Rule, *, quiet: bool) -> None:
        if not quiet and rule.use is not Use.USED:
            self._tell(f"element '{child.tag}' in '{element.tag}'", rule.use, child.position, rule.why)
        if rule.use is not Use.REFUSED:
            self.check(child, rule, quiet=quiet or rule.use is not Use.USED)

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

    def _check_text(self, element: Element, rule: Rule) -> None:
        if rule.text is not None:
            self._check_value(f"'{element.tag}'", element, element.text, rule.text)
        elif element.text:
            self.findings.error(f"text is not allowed here, in '{element.tag}'", element.position)

    def _check_value(self, what: str, element: Element, text: str, value: Value) -> None:
        if not value.accepts(text):
            shown = text if len(text) <= 100 else text[:100] + "…"
            message = f"value of {what} is invalid; must be {value.description}, not '{shown}'"
            self.findings.error(message, element.position)

    def _check_missing(self, element: Element, rule: Rule) -> None:
        for tag in sorted(rule.required - {child.tag for child in element.children}):
            message = f"element '{element.tag}' incomplete; missing required element '{tag}'"
            self.findings.error(message, element.position)

    def _unknown(self, what: str, element: Element, word: str, known: Mapping[str, object], position: Position) -> None:
        hint = did_you_mean(word, known) if self.findings.has_room else ""
        self.findings.error(f"{what} not allowed here, in '{element.tag}'{hint}", position)

    def _tell(self, what: str, use: Use, position: Position, why: str) -> None:
        level, report = _REPORTS[use]
        self.findings.add(Finding(f"{what} {report}" + (f": {why}" if why else ""), position, level))
