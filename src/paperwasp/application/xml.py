"""XML of an application package as a small tree with positions.

Document type declarations and entities are refused (defusedxml); size, depth, elements and attributes are limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from xml.sax import SAXException, SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import AttributesImpl, Locator

import defusedxml.sax
from defusedxml.common import DefusedXmlException
from msgspec import Struct, field

from paperwasp import limits
from paperwasp.errors import LanguageError, Position


class Element(Struct, frozen=True):
    """One element. `text` is the text directly within it, without white space at the ends."""

    tag: str
    attributes: Mapping[str, str]
    position: Position
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str) -> Iterator[Element]:
        """The children with that tag."""
        return (child for child in self.children if child.tag == tag)

    def first(self, tag: str) -> Element | None:
        return next(self.all(tag), None)


def parse_xml(content: bytes, source: str) -> Element:
    """The root of the document. `source` names the file in errors.

    Errors: LanguageError with the place, for anything that is not well-formed or not allowed.
    """
    return _parse(content, _Builder(source))


def parse_fragment(content: bytes, source: str, tag: str) -> Element:
    """A file of several elements side by side, as children of an element `tag`. Errors: as for `parse_xml`."""
    around = tag.encode()
    return _parse(b"<%b>\n%b\n</%b>" % (around, content, around), _Builder(source, lines_before=1))


def _parse(content: bytes, builder: _Builder) -> Element:
    if len(content) > limits.XML_BYTES:
        raise LanguageError(f"More than {limits.XML_BYTES} bytes of XML", builder.start)
    try:
        defusedxml.sax.parseString(content, builder, forbid_dtd=True)
    except SAXException as error:
        raise LanguageError(builder.describe(error), builder.position(error)) from error
    except DefusedXmlException as error:
        message = "Document type declarations and entities are not allowed"
        raise LanguageError(message, builder.position(error)) from error
    except (ValueError, LookupError, OverflowError) as error:
        raise LanguageError(f"Not XML: {error}", builder.position(error)) from error
    if builder.root is None:
        raise LanguageError("No element found", builder.start)
    return builder.root


_START: Final = (1, 0)
_UNCLOSED: Final = ("mismatched tag", "no element found")
"""The parser's messages where an element was not closed, far from where it begins."""


class _Builder(ContentHandler):
    """Builds the tree from the events of the parser."""

    def __init__(self, source: str, lines_before: int = 0) -> None:
        super().__init__()
        self.root: Element | None = None
        self.start = Position(source, 1, 1)
        self._lines_before = lines_before
        self._elements = 0
        self._open: list[tuple[Element, list[str]]] = []
        self._locator: Locator | None = None

    def setDocumentLocator(self, locator: Locator) -> None:  # noqa: N802 — the name is SAX's
        self._locator = locator

    def position(self, error: BaseException | None = None) -> Position:
        """Where the parser is, or where the error says it happened."""
        place = error if isinstance(error, SAXParseException) else self._locator
        line, column = (place.getLineNumber(), place.getColumnNumber()) if place else _START
        return Position(self.start.source, max((line or 1) - self._lines_before, 1), (column or 0) + 1)

    def describe(self, error: SAXException) -> str:
        """The parser's message, with the element that is not closed where that is the problem."""
        message = error.getMessage()
        of_the_file = self._open[1 if self._lines_before else 0 :]
        if message not in _UNCLOSED or not of_the_file:
            return message
        opened = of_the_file[-1][0]
        place = opened.position
        return f"{message}: '{opened.tag}' of line {place.line}, column {place.column} is not closed"

    def startElement(self, name: str, attrs: AttributesImpl) -> None:  # noqa: N802
        if len(self._open) >= limits.XML_DEPTH:
            raise LanguageError(f"Elements are nested deeper than {limits.XML_DEPTH}", self.position())
        self._elements += 1
        if self._elements > limits.XML_ELEMENTS:
            raise LanguageError(f"There are more than {limits.XML_ELEMENTS} elements", self.position())
        if len(attrs) > limits.XML_ATTRIBUTES:
            raise LanguageError(f"'{name}' has more than {limits.XML_ATTRIBUTES} attributes", self.position())
        self._open.append((Element(name, dict(attrs.items()), self.position()), []))

    def characters(self, content: str) -> None:
        if self._open:
            self._open[-1][1].append(content)

    def endElement(self, name: str) -> None:  # noqa: N802
        opened, texts = self._open.pop()
        text = "".join(texts).strip()
        element = Element(opened.tag, opened.attributes, opened.position, opened.children, text)
        if self._open:
            self._open[-1][0].children.append(element)
        else:
            self.root = element
