"""validation-overrides.xml: which changes that lose or hide data are allowed, and until when.

Vespa: https://docs.vespa.ai/en/reference/applications/validation-overrides.html
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.application.changes.validations import VALIDATIONS
from paperwasp.application.xml import Element, parse_xml
from paperwasp.base.patterns import compile_later
from paperwasp.errors import Finding, LanguageError, Position
from paperwasp.text.parsing.tokens import did_you_mean

_RENAMED: Final = {"content-type-removal": "schema-removal"}
"""Ids that Vespa still takes → their new names."""
_DATE: Final = compile_later(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ATTRIBUTES: Final = ("until", "comment")
_TOLD: Final = 100
"""Characters of what a file says that are repeated in a message."""


class Allow(Struct, frozen=True):
    """One override: it holds up to and including the day `until`, in UTC."""

    validation_id: str
    until: date
    comment: str = ""
    position: Position | None = None


class ValidationOverrides(Struct, frozen=True):
    """All overrides of a package."""

    allowed: tuple[Allow, ...] = ()

    def allows(self, validation_id: str, now: date) -> bool:
        """Return whether such a change may be made today, in UTC."""
        return any(allow.validation_id == validation_id and now <= allow.until for allow in self.allowed)

    def check(self, now: date) -> tuple[Finding, ...]:
        """Compares the last days with `now`: an error for one that is too far ahead, a note for one that is over."""
        latest = now + timedelta(days=limits.OVERRIDE_DAYS)
        return tuple(
            _too_far(allow) if allow.until > latest else _over(allow)
            for allow in self.allowed
            if not now <= allow.until <= latest
        )


def parse_overrides(
    content: bytes, source: str = "validation-overrides.xml", now: date | None = None
) -> tuple[ValidationOverrides, tuple[Finding, ...]]:
    """The overrides in a file, and all findings about it; with `now`, also those of `ValidationOverrides.check`.

    As in Vespa an unknown id is no error: it may be one of another version. What is wrong allows nothing.
    """
    try:
        root = parse_xml(content, source)
    except LanguageError as error:
        return ValidationOverrides(), (Finding(error.bare_message, error.position, "ERROR"),)
    findings: list[Finding] = []
    if root.tag != "validation-overrides":
        findings.append(_error(root, f"element '{_short(root.tag)}' not allowed here; expected 'validation-overrides'"))
        return ValidationOverrides(), tuple(findings)
    allowed = (_allow(element, findings) for element in root.children)
    overrides = ValidationOverrides(tuple(allow for allow in allowed if allow is not None))
    if now is not None:
        findings.extend(overrides.check(now))
    return overrides, tuple(findings)


def _allow(element: Element, findings: list[Finding]) -> Allow | None:
    if element.tag != "allow":
        findings.append(_error(element, f"element '{_short(element.tag)}' not allowed here; expected 'allow'"))
        return None
    for name in element.attributes:
        if name not in _ATTRIBUTES:
            hint = did_you_mean(name, _ATTRIBUTES)
            findings.append(_error(element, f"attribute '{_short(name)}' not allowed here, in 'allow'{hint}"))
    until = _until(element, findings)
    validation_id = _RENAMED.get(element.text, element.text)
    if validation_id not in VALIDATIONS:
        # Comparing words takes time: only for as many problems as are reported.
        hint = did_you_mean(validation_id, VALIDATIONS) if len(findings) < limits.PACKAGE_PROBLEMS else ""
        message = f"unknown validation id '{_short(element.text)}' allows nothing{hint}"
        findings.append(Finding(message, element.position))
        return None
    return Allow(validation_id, until, element.attributes.get("comment", ""), element.position) if until else None


def _until(element: Element, findings: list[Finding]) -> date | None:
    text = element.attributes.get("until")
    if text is None:
        findings.append(_error(element, "element 'allow' missing required attribute 'until'"))
        return None
    try:
        if _DATE.fullmatch(text.strip()):
            return date.fromisoformat(text.strip())
    except ValueError:
        pass
    findings.append(_error(element, f"'{_short(text)}' in 'until' is no date like 2026-01-31"))
    return None


def _too_far(allow: Allow) -> Finding:
    message = f"allow '{allow.validation_id}' until {allow.until} is too far in the future"
    return Finding(f"{message}: Max {limits.OVERRIDE_DAYS} days is allowed", allow.position, "ERROR")


def _over(allow: Allow) -> Finding:
    message = f"allow '{allow.validation_id}' until {allow.until} has no effect: that day is over"
    return Finding(message, allow.position, "INFO")


def _short(text: str) -> str:
    return text if len(text) <= _TOLD else f"{text[:_TOLD]}…"


def _error(element: Element, message: str) -> Finding:
    return Finding(message, element.position, "ERROR")
