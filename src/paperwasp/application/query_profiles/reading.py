"""Reads query profiles and their types from their files: first all ids, then what each says, since each may name
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.application.findings import Findings
from paperwasp.application.query_profiles.field_types import (
    PRIMITIVES,
    PROFILE,
    FieldDescription,
    FieldType,
    ProfileType,
    native_types,
)
from paperwasp.application.query_profiles.model import (
    NAME,
    ComponentId,
    Layer,
    QueryProfile,
    Registry,
    Template,
    Value,
    When,
    parse_value,
)
from paperwasp.application.xml import Element, parse_xml
from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import LanguageError, Position
from paperwasp.text.parsing.tokens import did_you_mean

# The common form of the files of profiles and of types: a root with an id that the file is named after.
#
# Vespa passes over attributes and elements that it does not know. So does this, with a warning.


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


# Looks up names with dots in the types of query profiles, and checks that values of query profiles fit.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/query-profiles.html#field-type


class Declared(Struct, frozen=True):
    """The full name behind aliases, the field that a type declares there if any, and why there can be none if so."""

    name: str
    field: FieldDescription | None = None
    problem: str = ""


def declared_at(type_: ProfileType | None, name: str) -> Declared:
    """Looks `name` up in `type_` and in the types of the profiles below it. `type_` None: nothing is declared."""
    parts = name.split(".")
    for index, part in enumerate(parts):
        if type_ is None:
            break
        parts[index] = part = type_.unalias(part)
        field = type_.field(part)
        if field is None:
            return Declared(".".join(parts), None, describe_undeclared(part, type_) if type_.strict else "")
        if index == len(parts) - 1:
            return Declared(".".join(parts), field)
        if not field.type.is_profile:
            return Declared(".".join(parts), None, f"'{part}' is not a query profile in {type_}, but {field.type}")
        type_ = field.type.profile_type
    return Declared(".".join(parts))


def describe_undeclared(part: str, type_: ProfileType) -> str:
    """The problem that a strict type declares no such name."""
    return f"'{part}' is not declared in {type_}, and the type is strict"


def check_field(
    declared: Declared, value: str | Template | QueryProfile, position: Position, findings: Findings
) -> bool:
    """Return whether a query profile may set this; reports why not, and what has no effect."""
    problem = declared.problem or _misfit(value, declared.field)
    if problem:
        shown = value.id if isinstance(value, QueryProfile) else str(value)[:100]
        findings.error(f"Could not set '{declared.name}' to '{shown}': {problem}", position)
        return False
    if declared.field is None:
        _warn_native(declared.name, value, position, findings)
    return True


def _misfit(value: str | Template | QueryProfile, field: FieldDescription | None) -> str:
    if field is None or (isinstance(value, Template) and not field.type.is_profile):
        return ""
    if not isinstance(value, QueryProfile):
        return field.type.misfit(str(value))
    if not field.type.is_profile:
        return f"{value} is not a value of type {field.type}"
    wanted = field.type.profile_type
    if wanted is None or (value.type is not None and value.type.is_a(wanted)):
        return ""
    return f"{value} is not a {field.type}"


_NATIVE: Final = native_types()


def _native_names(type_: ProfileType, prefix: str = "") -> Iterator[tuple[str, FieldDescription]]:
    for field in type_.fields.values():
        full = f"{prefix}{field.name}" if field.name else prefix.rstrip(".")
        yield full, field
        if field.type.profile_type is not None:
            yield from _native_names(field.type.profile_type, f"{full}.")


_NAMES: Final = {
    name: field for type_ in ("native", "DefaultProperties") for name, field in _native_names(_NATIVE[type_])
}
_BY_LOWER_CASE: Final = {name.lower(): name for name in _NAMES}
_BY_ALIAS: Final = {alias.lower(): name for name, field in _NAMES.items() for alias in field.aliases}


def _warn_native(name: str, value: str | Template | QueryProfile, position: Position, findings: Findings) -> None:
    """Warns of what looks like a parameter of queries and will not be one."""
    group, dot, rest = name.partition(".")
    known = _NAMES.get(name)
    if known is None or (known.type.is_profile and known.type.profile_type and not known.type.profile_type.field("")):
        full = _BY_ALIAS.get(name.lower()) or _BY_LOWER_CASE.get(name.lower())
        if rest and group in _BY_ALIAS and _NAMES[_BY_ALIAS[group]].type.is_profile:
            full = f"{_BY_ALIAS[group]}.{rest}"
        if full is not None and full != name and not isinstance(value, QueryProfile):
            findings.warning(
                f"'{name}' sets no parameter: in query profiles it is '{full}', in full and in its case", position
            )
        elif group in _NATIVE and dot and (problem := declared_at(_NATIVE[group], rest).problem):
            findings.warning(f"'{name}' sets no parameter: {problem}", position)
    elif isinstance(value, str) and (problem := known.type.misfit(value)):
        findings.warning(f"'{name}' cannot be set to this, and queries that get it will fail: {problem}", position)


# Reads query profile types from their files: first all ids, then what each says, since types refer to each other.


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
    before = holder.declared.get(last)
    if before is not None and (before.type.profile_type is None or not before.type.profile_type.is_nested):
        findings.warning(f"Field '{name}' is declared twice in {owner}: the last holds", element.position)
    mandatory, overridable = flag(element, "mandatory", findings), flag(element, "overridable", findings)
    holder.declared[last] = FieldDescription(last, field_type, aliases, bool(mandatory), overridable is not False)


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


# Reads query profiles from their files: first all ids, then what each says, since profiles refer to each other.


class ProfileReader:
    """Reads the profiles of a package."""

    def __init__(self, types: Registry[ProfileType], findings: Findings) -> None:
        self.profiles: Registry[QueryProfile] = Registry()
        self._types = types
        self._findings = findings

    def read(self, files: Mapping[str, bytes]) -> list[QueryProfile]:
        """Reads all profiles. What cannot be used of them is left out, and reported."""
        read: list[tuple[QueryProfile, Element]] = []
        for path, content in sorted(files.items()):
            if (found := read_root(path, content, "query-profile", self._findings)) is None:
                continue
            id_, root = found
            profile = QueryProfile(id_, self._type_of(root), position=root.position)
            element = root.first("dimensions")
            if element is not None:
                check_known(element, "dimensions", self._findings)
                profile.declared_dimensions = tuple(words(element.text, ","))
            if self.profiles.add(id_, profile):
                read.append((profile, root))
            else:
                self._findings.error(f"There is another query profile '{id_}'", root.position)
        for profile, root in read:
            profile.own.inherits.extend(self._find_inherited(root, str(profile)))
            settings: dict[str, bool] = {}
            self._read_fields(profile, profile.own, root, str(profile), settings)
            variants: dict[When, Layer] = {}
            for element in root.all("query-profile"):
                self._read_variant(profile, variants, element, settings)
            profile.variants.extend(variants.values())
        return [profile for profile, _ in read]

    def _type_of(self, root: Element) -> ProfileType | None:
        reference = root.attributes.get("type", "")
        type_ = self._types.find(reference) if reference else None
        if reference and type_ is None:
            meant = hint(reference, self._types.names, self._findings)
            self._findings.error(f"Query profile type '{reference}' can not be resolved{meant}", root.position)
        return type_

    def _find_inherited(self, element: Element, of: str) -> list[QueryProfile]:
        references = words(element.attributes.get("inherits", ""))
        problem = "Could not resolve inherited query profile"
        found = [self._find(reference, f"{problem} '{reference}'", of, element) for reference in references]
        return [profile for profile in found if profile is not None]

    def _find(self, reference: str, problem: str, of: str, element: Element) -> QueryProfile | None:
        profile = self.profiles.find(reference)
        if profile is None:
            meant = hint(reference, self.profiles.names, self._findings)
            self._findings.error(f"{problem} in {of}{meant}", element.position)
        return profile

    def _read_variant(
        self, profile: QueryProfile, variants: dict[When, Layer], element: Element, settings: dict[str, bool]
    ) -> None:
        """Several for the same values are one. How many values there may be is checked later."""
        check_known(element, "query-profile for", self._findings)
        if "for" not in element.attributes:
            self._findings.error(f"A variant of {profile} does not say what it is 'for'", element.position)
            return
        given = element.attributes["for"]
        when = [None if value.strip() == "*" else value.strip() for value in given.split(",")]
        while when and when[-1] is None:
            when.pop()
        layer = variants.setdefault(tuple(when), Layer(tuple(when), element.position))
        of = f"variant '{given}' of {profile}"
        layer.inherits.extend(self._find_inherited(element, of))
        self._read_fields(profile, layer, element, of, dict(settings))

    def _read_fields(
        self, profile: QueryProfile, layer: Layer, parent: Element, of: str, settings: dict[str, bool]
    ) -> None:
        """`settings`: name → whether it may be overridden, as declared here and in the layer around."""
        for element in parent.all("field"):
            check_known(element, "field", self._findings)
            name = field_name(element, of, limits.QUERY_PROFILE_DEPTH, self._findings)
            value = self._value(name, element, of) if name is not None else None
            if name is None or value is None:
                continue
            declared = declared_at(profile.type, name)
            if isinstance(value, str) and declared.field is not None and declared.field.type.is_profile:
                value = self.profiles.find(value) or value
            if not check_field(declared, value, element.position, self._findings):
                continue
            overridable = flag(element, "overridable", self._findings)
            if overridable is not None:
                settings[declared.name] = overridable
            by_type = declared.field is None or declared.field.overridable
            self._add(layer, declared.name, value, settings.get(declared.name, by_type), element)
        layer.references.sort(key=lambda reference: -reference[0].count("."))

    def _add(
        self, layer: Layer, name: str, value: str | Template | QueryProfile, overridable: bool, element: Element
    ) -> None:
        if isinstance(value, QueryProfile):
            layer.references.append((name, value, overridable))
            return
        if name in layer.values:
            self._findings.warning(f"Field '{name}' is set twice: the last holds", element.position)
        layer.values[name] = Value(value, overridable, element.position)

    def _value(self, name: str, element: Element, of: str) -> str | Template | QueryProfile | None:
        reference = element.first("ref")
        if reference is not None:
            check_known(reference, "ref", self._findings)
            problem = f"Could not find query profile '{reference.text}' referenced as '{name}'"
            return self._find(reference.text, problem, of, element)
        try:
            return parse_value(element.text)
        except ValueError as error:
            self._findings.error(f"Field '{name}' in {of}: {error}", element.position)
            return None
