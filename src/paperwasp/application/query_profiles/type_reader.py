"""Reads query profile types from their files: first all ids, then what each says, since types refer to each other."""

from __future__ import annotations

from collections.abc import Mapping

from paperwasp import limits
from paperwasp.application.findings import Findings
from paperwasp.application.query_profiles.elements import check_known, field_name, flag, hint, read_root, words
from paperwasp.application.query_profiles.field_types import (
    PRIMITIVES,
    PROFILE,
    FieldDescription,
    FieldType,
    ProfileType,
)
from paperwasp.application.query_profiles.ids import ComponentId, Registry
from paperwasp.application.query_profiles.native import native_types
from paperwasp.application.xml import Element
from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import Position

_PROFILE_OF = f"{PROFILE}:"


def read_types(files: Mapping[str, bytes], findings: Findings) -> Registry[ProfileType]:
    """All types, the built-in ones included."""
    registry: Registry[ProfileType] = Registry()
    for name, native in native_types().items():
        registry.add(ComponentId(name), native)
    read: list[tuple[ProfileType, Element]] = []
    for path, content in sorted(files.items()):
        if (found := read_root(path, content, "query-profile-type", findings)) is None:
            continue
        id_, root = found
        type_ = ProfileType(
            str(id_),
            declared_strict=root.first("strict") is not None,
            declared_match_path=root.first("match") is not None,
            position=root.position,
        )
        if registry.add(id_, type_):
            read.append((type_, root))
        else:
            findings.error(f"There is another query profile type '{id_}'", root.position)
    for type_, root in read:
        _read_inherited(type_, root, registry, findings)
    graph = _TypeGraph(findings)
    read.sort(key=lambda entry: graph.height(entry[0], ()))
    for type_, root in read:
        for element in root.all("field"):
            _read_field(type_, element, registry, findings)
    return registry


def _read_inherited(type_: ProfileType, root: Element, types: Registry[ProfileType], findings: Findings) -> None:
    for reference in words(root.attributes.get("inherits", "")):
        parent = types.find(reference)
        if parent is None:
            meant = hint(reference, types.names, findings)
            findings.error(f"Could not resolve inherited query profile type '{reference}'{meant}", root.position)
        else:
            type_.inherits.append(parent)


class _TypeGraph:
    """Finds types that inherit themselves, or through too many generations, and cuts that inheritance."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._heights: dict[ProfileType, int] = {}

    def height(self, type_: ProfileType, above: tuple[ProfileType, ...]) -> int:
        """Generations that it inherits; types are filled by rising height, each after what it inherits."""
        if type_ in self._heights:
            return self._heights[type_]
        path = (*above, type_)
        height = 0
        for parent in list(type_.inherits):
            if parent in path:
                circle = " → ".join(member.name for member in (*path[path.index(parent) :], parent))
                self._cut(type_, parent, f"The inheritance of query profile types goes in a circle: {circle}")
                continue
            if len(path) > limits.QUERY_PROFILE_DEPTH or self.height(parent, path) >= limits.QUERY_PROFILE_DEPTH:
                self._cut(type_, parent, f"Inheritance is deeper than {limits.QUERY_PROFILE_DEPTH} generations")
                continue
            height = max(height, self._heights[parent] + 1)
        self._heights[type_] = height
        return height

    def _cut(self, type_: ProfileType, parent: ProfileType, message: str) -> None:
        self._findings.error(message, type_.position)
        type_.inherits.remove(parent)


def _read_field(owner: ProfileType, element: Element, types: Registry[ProfileType], findings: Findings) -> None:
    check_known(element, "field type", findings)
    name = field_name(element, owner, limits.QUERY_PROFILE_DEPTH, findings)
    field_type = _field_type(element, types, findings)
    aliases = tuple(words(element.attributes.get("alias", "")))
    if name is None or field_type is None:
        return
    if aliases and "." in name:
        findings.error(f"Field '{name}' has dots in its name and so cannot have aliases", element.position)
    *groups, last = name.split(".")
    holder = owner
    for group in groups:
        nested = _add_nested(holder, group, types, element.position, findings)
        if nested is None:
            return
        holder = nested
    if last in holder.declared and not _is_nested(holder.declared[last]):
        findings.warning(f"Field '{name}' is declared twice in {owner}: the last holds", element.position)
    mandatory, overridable = flag(element, "mandatory", findings), flag(element, "overridable", findings)
    holder.declared[last] = FieldDescription(last, field_type, aliases, bool(mandatory), overridable is not False)


def _is_nested(field: FieldDescription) -> bool:
    return field.type.profile_type is not None and field.type.profile_type.is_nested


def _add_nested(
    owner: ProfileType, group: str, types: Registry[ProfileType], position: Position, findings: Findings
) -> ProfileType | None:
    """The type of the group of that name in `owner`, which may be changed: what there is already is extended by it."""
    field = _find_field(owner, group)
    if field is not None and not field.type.is_profile:
        message = f"Cannot use '{group}' before a dot in {owner}: it is already declared as {field.type}"
        findings.error(message, position)
        return None
    base = types.find(group) if field is None else field.type.profile_type
    own = owner.declared.get(group)
    if own is not None and base is not None and base.is_nested and own.type.profile_type is base:
        return base
    nested = ProfileType(group, inherits=[base] if base else [], is_nested=True, position=position)
    described = field or FieldDescription(group, FieldType(PROFILE))
    owner.declared[group] = FieldDescription(
        group, FieldType(PROFILE, profile_type=nested), described.aliases, described.mandatory, described.overridable
    )
    return nested


def _find_field(type_: ProfileType, name: str) -> FieldDescription | None:
    """The field of that name in a type or those that it inherits, as far as they are read; None: there is none."""
    waiting, seen = [type_], set[ProfileType]()
    while waiting:
        found = waiting.pop()
        if name in found.declared:
            return found.declared[name]
        if found not in seen:
            seen.add(found)
            waiting.extend(reversed(found.inherits))
    return None


def _field_type(element: Element, types: Registry[ProfileType], findings: Findings) -> FieldType | None:
    text = element.attributes.get("type", "")
    if text in PRIMITIVES or text in (PROFILE, _PROFILE_OF):
        return FieldType(text.rstrip(":"))
    if text.startswith(_PROFILE_OF):
        reference = text.removeprefix(_PROFILE_OF)
        if (type_ := types.find(reference)) is not None:
            return FieldType(PROFILE, profile_type=type_)
        meant = hint(reference, types.names, findings)
        findings.error(f"Could not resolve query profile type '{reference}'{meant}", element.position)
    elif text.startswith("tensor"):
        try:
            return FieldType("tensor", tensor=TensorType.parse(text))
        except ValueError as error:
            findings.error(f"The type of a field is wrong: {error}", element.position)
    elif not text:
        findings.error("The field has no 'type'", element.position)
    else:
        findings.error(
            f"Unknown type '{text}'{hint(text, (*PRIMITIVES, PROFILE, 'tensor'), findings)}", element.position
        )
    return None
