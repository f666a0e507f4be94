"""Reads query profiles from their files: first all ids, then what each says, since profiles refer to each other."""

from __future__ import annotations

from collections.abc import Mapping

from paperwasp import limits
from paperwasp.application.findings import Findings
from paperwasp.application.query_profiles.declarations import check_field, declared_at
from paperwasp.application.query_profiles.elements import check_known, field_name, flag, hint, read_root, words
from paperwasp.application.query_profiles.field_types import ProfileType
from paperwasp.application.query_profiles.ids import Registry
from paperwasp.application.query_profiles.model import Layer, QueryProfile, Value, When
from paperwasp.application.query_profiles.substitution import Template, parse_value
from paperwasp.application.xml import Element


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
            self._read_dimensions(profile, root)
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

    def _read_dimensions(self, profile: QueryProfile, root: Element) -> None:
        element = root.first("dimensions")
        if element is not None:
            check_known(element, "dimensions", self._findings)
            profile.declared_dimensions = tuple(words(element.text, ","))

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
