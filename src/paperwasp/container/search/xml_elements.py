"""Elements of XML as texts, each on lines of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.document.float_text import double_text

_NO_XML: Final = compile_later("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def element(tag: str, attributes: str, children: Sequence[str], level: int) -> str:
    """An element on lines of its own; the children have theirs."""
    start, end = "\n" + "  " * level, "\n" + "  " * level if children else ""
    return f"{start}<{tag}{attributes}>{''.join(children)}{end}</{tag}>"


def leaf(tag: str, attributes: str, content: str, level: int) -> str:
    """`content` is XML already."""
    return f"\n{'  ' * level}<{tag}{attributes}>{content}</{tag}>"


def empty(tag: str, attributes: str, level: int) -> str:
    """An element of which nothing but its attributes was ever begun, which Vespa's XMLWriter.java writes short."""
    return f"\n{'  ' * level}<{tag}{attributes}/>"


def attributes_of(values: Mapping[str, object]) -> str:
    texts = {name: scalar_text(value) for name, value in values.items() if value is not None}
    return "".join(f' {name}="{escaped(text, in_attribute=True)}"' for name, text in texts.items() if text)


def escaped(text: str, *, in_attribute: bool = False) -> str:
    """Text as XML has it; characters that XML cannot have are left out."""
    text = _NO_XML.sub("", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;") if in_attribute else text


def scalar_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return double_text(value) if isinstance(value, float) else str(value)
