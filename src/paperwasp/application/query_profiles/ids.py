"""Ids of query profiles and types: a name and a version, and how a reference finds the one it means.

    MyProfile · MyProfile:1.2.3 · MyProfile:1.2.3.beta

A reference that leaves the version, or its end, open means the newest one that begins so.
Vespa: https://docs.vespa.ai/en/querying/query-profiles.html#versioning
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic, TypeVar

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass

NAME: Final = compile_later(r"[$a-zA-Z_/][-$a-zA-Z0-9_/()]*")
"""The name of a profile, of a type, or of one part of a field's name."""
_VERSION: Final = compile_later(r"(\d{1,9})(?:\.(\d{1,9})(?:\.(\d{1,9})(?:\.([a-zA-Z0-9_-]+))?)?)?")

Version = tuple[int, int, int, str]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ComponentId:
    """A name and a version; `given` says how much of the version was written."""

    name: str
    version: Version = (0, 0, 0, "")
    given: int = 0

    @classmethod
    def parse(cls, text: str) -> ComponentId:
        """Errors: ValueError that says what is wrong."""
        name, colon, version = text.partition(":")
        if NAME.fullmatch(name) is None:
            raise ValueError(f"Illegal name '{name}'")
        if not colon:
            return cls(name)
        match = _VERSION.fullmatch(version)
        if match is None:
            raise ValueError(f"Illegal version '{version}' in '{text}'; one looks like 1, 1.2, 1.2.3 or 1.2.3.name")
        major, minor, micro, qualifier = match.groups()
        given = sum(part is not None for part in match.groups())
        return cls(name, (int(major), int(minor or 0), int(micro or 0), qualifier or ""), given)

    def admits(self, version: Version) -> bool:
        """Whether this, as a reference, can mean something of that version."""
        return version[: self.given] == self.version[: self.given]

    def __str__(self) -> str:
        if self.version == (0, 0, 0, ""):
            return self.name
        *numbers, qualifier = self.version
        return f"{self.name}:{'.'.join(map(str, numbers))}{f'.{qualifier}' if qualifier else ''}"


class Registry(Generic[T]):
    """Things by id."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[Version, T]] = {}

    def add(self, id_: ComponentId, thing: T) -> bool:
        """False, and nothing is changed, where the id is taken."""
        versions = self._by_name.get(id_.name, {})
        if id_.version in versions:
            return False
        self._by_name[id_.name] = dict(sorted((versions | {id_.version: thing}).items()))
        return True

    def find(self, reference: str) -> T | None:
        """The newest thing that the reference can mean."""
        versions = self._by_name.get(reference)
        if versions is not None:
            return next(reversed(versions.values()))
        if ":" not in reference:
            return None
        try:
            id_ = ComponentId.parse(reference)
        except ValueError:
            return None
        versions = self._by_name.get(id_.name, {})
        return next((thing for version, thing in reversed(versions.items()) if id_.admits(version)), None)

    def __iter__(self) -> Iterator[T]:
        return (thing for versions in self._by_name.values() for thing in versions.values())

    @property
    def names(self) -> Iterator[str]:
        return iter(self._by_name)
