"""`preprocess:properties`: names for texts, put in where `${name}` stands in an attribute or in an element's text.

Properties may be defined anywhere, count everywhere, and the last of one name wins. What they are put into is not
looked at again, so properties do not refer to each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Final

from paperwasp import limits
from paperwasp.application.findings import Findings
from paperwasp.application.xml import Element
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass
from paperwasp.errors import Position
from paperwasp.text.parsing.nearest import did_you_mean

_PROPERTIES: Final = "preprocess:properties"
_REFERENCE: Final = compile_later(r"\$\{([^${}]*)\}")


def with_properties(root: Element, findings: Findings) -> Element:
    """The tree with properties put in, and without their definitions."""
    values: dict[str, str] = {}
    for element in _definitions(root):
        if element.tag in values:
            findings.warning(
                f"The property '{element.tag}' is defined more than once; the last counts", element.position
            )
        values[element.tag] = element.text
    return _Filler(values, findings).fill(root)


def _definitions(root: Element) -> Iterator[Element]:
    for child in root.children:
        yield from child.children if child.tag == _PROPERTIES else _definitions(child)


@dataclass(slots=True)
class _Filler:
    values: Mapping[str, str]
    findings: Findings
    _room: int = field(default=limits.XML_BYTES)

    def fill(self, element: Element) -> Element:
        position = element.position
        return replace(
            element,
            attributes={name: self._text(text, position) for name, text in element.attributes.items()},
            children=[self.fill(child) for child in element.children if child.tag != _PROPERTIES],
            text=self._text(element.text, position) if not element.children else element.text,
        )

    def _text(self, text: str, position: Position) -> str:
        return _REFERENCE.sub(lambda found: self._value(found, position), text) if "${" in text else text

    def _value(self, reference: re.Match[str], position: Position) -> str:
        name = reference[1]
        if name not in self.values:
            hint = did_you_mean(name, self.values)
            self.findings.error(f"The property '{name}' is not defined{hint}", position)
            return reference[0]
        self._room -= len(self.values[name])
        if self._room < 0:
            self.findings.error(f"Properties make more than {limits.XML_BYTES} characters", position)
            return ""
        return self.values[name]
