"""The parts of a package beside its schemas: files of constants and models, and the components that services.xml
declares.

A schema has them wherever it goes, so that a profile is compiled on a content node from what the deployment saw. They
are released with the schema: nothing else holds them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from paperwasp.base.file_contents import digest_of, size_of
from paperwasp.errors import Position

# Components as services.xml declares them. The indexing scripts of a schema call some of them by their ids.


_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


class Component(Struct, frozen=True):
    """A component, handler, searcher, renderer or embedder: what kind, its id, and the text of what is in it."""

    kind: str
    """The tag that it is written with."""
    id: str
    type: str = ""
    """The type of built-in components: `hugging-face-embedder`, …"""
    class_name: str = ""
    bundle: str = ""
    settings: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    """Path of the child element (`transformer-model`, `transformer-model@path`) → its text or attribute. The second of
    several is `model#2`."""
    position: Position | None = None


_Made = TypeVar("_Made")


class PackageFile(Struct, frozen=True):
    """One file, which is read when it is asked for. `path` is that in the package."""

    path: str
    _contents: Mapping[str, bytes]

    def read(self) -> bytes:
        return self._contents[self.path]

    @property
    def size_bytes(self) -> int:
        return size_of(self._contents, self.path)

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the content: the same for the same content, wherever it is."""
        return digest_of(self._contents, self.path)


class PackageFiles(Mapping[str, PackageFile]):
    """Path in the package → file, without a copy of any."""

    def __init__(self, contents: Mapping[str, bytes] | None = None) -> None:
        self._contents = {} if contents is None else contents
        self._made: dict[Hashable, Any] = {}
        self._making = threading.RLock()

    def __getitem__(self, path: str) -> PackageFile:
        if path not in self._contents:
            raise KeyError(path)
        return PackageFile(path, self._contents)

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __len__(self) -> int:
        return len(self._contents)

    def __contains__(self, path: object) -> bool:
        return path in self._contents

    def once(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """The result of the first `make` with that key, kept as long as the files are. Any thread. Errors: its own."""
        with self._making:
            if key not in self._made:
                self._made[key] = make()
            made: _Made = self._made[key]
            return made
