"""The files of an application package as its schemas have them: constants and models, for whoever compiles a profile.

A schema has them wherever it goes, so that a profile is compiled on a content node from what the deployment saw. They
are released with the schema: nothing else holds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PackageFile:
    """One file. `path` is that in the package."""

    path: str
    content: bytes

    def read(self) -> bytes:
        return self.content


class PackageFiles(Mapping[str, PackageFile]):
    """Path in the package → file, without a copy of any."""

    def __init__(self, contents: Mapping[str, bytes] | None = None) -> None:
        self._contents = {} if contents is None else contents

    def __getitem__(self, path: str) -> PackageFile:
        return PackageFile(path, self._contents[path])

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __len__(self) -> int:
        return len(self._contents)

    def __contains__(self, path: object) -> bool:
        return path in self._contents
