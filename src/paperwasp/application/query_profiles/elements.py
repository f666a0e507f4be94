"""The common form of the files of profiles and of types: a root with an id that the file is named after.

Vespa passes over attributes and elements that it does not know. So does this, with a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from paperwasp.application.findings import Findings
from paperwasp.application.query_profiles.ids import NAME, ComponentId
from paperwasp.application.xml import Element, parse_xml
from paperwasp.errors import LanguageError, Position
from paperwasp.text.parsing.nearest import did_you_mean

ATTRIBUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "query-profile": ("id", "type", "inherits"),
    "query-profile for": ("for", "inherits"),
    "query-profile-type": ("id", "inherits"),
    "field": ("name", "overridable"),
    "field type": ("name", "type", "alias", "mandatory", "overridable", "description"),
    "match": ("path",),
    "strict": (),
    "description": (),
    "dimensions": (),
    "ref": (),
}
"""Element, or element in a role of its own → the attributes that it may have."""
CHILDREN: Final[Mapping[str, tuple[str, ...]]] = {
    "query-profile": ("description", "dimensions", "field", "query-profile"),
    "query-profile for": ("description", "field"),
    "query-profile-type": ("description", "match", "strict", "field"),
    "field": ("ref",),
}
_BOOLEANS: Final = {"": None, "true": True, "false": False}


def read_root(path: str, content: bytes, tag: str, findings: Findings) -> tuple[ComponentId, Element] | None:
    """The root element of a file and the id that it gives; None where either is wrong."""
    what = tag.replace("-", " ")
    try:
        root = parse_xml(content, path)
    except LanguageError as error:
        findings.error(error.bare_message, error.position)
        return None
    if root.tag != tag:
        findings.error(f"Root tag must be '{tag}', not '{root.tag}'", root.position)
        return None
    if not root.attributes.get("id"):
        findings.error(f"The {what} has no 'id'", root.position)
        return None
    check_known(root, tag, findings)
    try:
        id_ = ComponentId.parse(root.attributes["id"])
    except ValueError as error:
        findings.error(str(error), root.position)
        return None
    _check_file_name(path, root.attributes["id"], id_, what, root.position, findings)
    return id_, root


def _check_file_name(path: str, text: str, id_: ComponentId, what: str, position: Position, findings: Findings) -> None:
    stem = path.rpartition("/")[2].removesuffix(".xml").replace(":", "-")
    name = id_.name.replace("/", "_")
    expected = text.replace(":", "-").replace("/", "_")
    try:
        is_same = stem.startswith(f"{name}-") and ComponentId.parse(f"x:{stem[len(name) + 1 :]}").version == id_.version
    except ValueError:
        is_same = False
    if stem != expected and not (stem == name and id_.version == ComponentId(name).version) and not is_same:
        findings.error(f"The file name of {what} '{text}' must be '{expected}.xml'", position)


def check_known(element: Element, role: str, findings: Findings) -> None:
    """Warns of what in the element is passed over."""
    for name in element.attributes:
        _warn_unknown(name, ATTRIBUTES[role], f"attribute '{name}' of '{element.tag}'", element.position, findings)
    for child in element.children:
        known = CHILDREN.get(role, ())
        _warn_unknown(child.tag, known, f"element '{child.tag}' in '{element.tag}'", child.position, findings)


def hint(word: str, known: Iterable[str], findings: Findings) -> str:
    """Which known word may have been meant; nothing where so much is wrong already that it will not be read."""
    return did_you_mean(word, known) if findings.has_room else ""


def _warn_unknown(word: str, known: Iterable[str], what: str, position: Position, findings: Findings) -> None:
    if word not in known:
        findings.warning(f"The {what} is unknown and has no effect{hint(word, known, findings)}", position)


def flag(element: Element, attribute: str, findings: Findings) -> bool | None:
    """The boolean that the attribute says; None where it says none."""
    text = element.attributes.get(attribute, "")
    if text not in _BOOLEANS:
        findings.error(f"Attribute '{attribute}' must be 'true' or 'false', not '{text}'", element.position)
    return _BOOLEANS.get(text)


def field_name(element: Element, of: object, depth: int, findings: Findings) -> str | None:
    """The name of a field; None, and a finding, where it is none."""
    name = element.attributes.get("name", "")
    if not name:
        findings.error(f"A field in {of} has no 'name'", element.position)
        return None
    parts = name.split(".")
    illegal = next((part for part in parts if NAME.fullmatch(part) is None), None)
    if illegal is not None:
        findings.error(f"Illegal name '{illegal}' of a field in {of}", element.position)
        return None
    if len(parts) > depth:
        findings.error(f"The name of a field in {of} has more than {depth} parts", element.position)
        return None
    return name


def words(text: str, separator: str | None = None) -> list[str]:
    """The parts of an attribute that lists several."""
    return [word.strip() for word in text.split(separator) if word.strip()]
