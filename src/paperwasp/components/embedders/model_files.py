"""The files of models and tokenizers that components name: in the application package, or in the model cache.

    path        a file of the package
    url         <cache>/<host>/<path>, a copy of what is at that address
    model-id    <cache>/model-id/<id>

The first that is given, in this order, is used. The service fetches nothing: one that fetched what a package names
would go wherever a package sends it, and start only where it can. `paperwasp models fetch` fills the cache, which is
the folder of PAPERWASP_MODEL_CACHE, else ~/.cache/paperwasp/models.

Vespa: https://docs.vespa.ai/en/reference/rag/embedding.html#model-config-reference
Differs: Vespa fetches a `url`, and that goes before a `path`.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from paperwasp import limits
from paperwasp.errors import NotFound

_CACHE_VARIABLE: Final = "PAPERWASP_MODEL_CACHE"
PATH: Final = "path"
MODEL_ATTRIBUTES: Final = (PATH, "url", "model-id")
"""The attributes that name the file of a model, the first that is given counts."""


class File(Protocol):
    """A file of the package (`schema.files.PackageFile`)."""

    def read(self) -> bytes: ...


Files = Mapping[str, File]


class ModelFile(Struct, frozen=True):
    """A file that is there. A large one is not kept in memory: it is read whenever its content is asked for."""

    name: str
    """As messages name it: its path in the package, its address or its id."""
    source: bytes | File

    @property
    def content(self) -> bytes:
        """Errors: NotFound for a file of the model cache that is gone by now."""
        return self.source if isinstance(self.source, bytes) else self.source.read()


class _CachedFile(Struct, frozen=True):
    """A file of the model cache."""

    path: Path
    missing: str
    """The error where it is not there."""

    def read(self, most_bytes: int = limits.MODEL_FILE_BYTES + 1) -> bytes:
        """Errors: NotFound."""
        try:
            with self.path.open("rb") as file:
                return file.read(most_bytes)
        except OSError:
            raise NotFound(self.missing) from None


def cache_folder() -> Path:
    """The folder for models that are not in packages."""
    named = os.environ.get(_CACHE_VARIABLE)
    return Path(named) if named else Path.home() / ".cache" / "paperwasp" / "models"


def reference_of(given: Mapping[str, str]) -> tuple[str, str] | None:
    """The attribute that counts of those of an element, and its value; None: the element names no file."""
    return next(((name, given[name]) for name in MODEL_ATTRIBUTES if given.get(name)), None)


def find_model(setting: str, given: Mapping[str, str], files: Files) -> ModelFile | None:
    """The file that an element `setting` names by the attributes `given`; None: it names none.

    Errors: NotFound for a file that is not there, with the place where it is looked for; it may be there later.
    """
    reference = reference_of(given)
    if reference is None:
        return None
    attribute, name = reference
    if attribute != PATH:
        return _cached(setting, attribute, name)
    found = files.get(posixpath.normpath(name))
    if found is None:
        raise NotFound(f"{setting}: file '{name}' is not in the application package")
    return ModelFile(name, found)


def cache_path(attribute: str, name: str) -> Path:
    """Where the model cache has what a `url` or `model-id` names. Errors: ValueError for what is no name of a file."""
    if attribute == "url":
        split = urlsplit(name)
        place: tuple[str, ...] = ((split.hostname or ""), *_parts(unquote(split.path)))
    else:
        place = ("model-id", *_parts(name))
    if len(place) < 2 or any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in place):
        raise ValueError(f"{attribute} '{name}' cannot be a file of the model cache")
    return cache_folder().joinpath(*place)


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def _cached(setting: str, attribute: str, name: str) -> ModelFile:
    problem = f"{setting}: {attribute} '{name}'"
    try:
        path = cache_path(attribute, name)
    except ValueError as error:
        raise NotFound(f"{setting}: {error}: put the file into the application package") from None
    missing = (
        f"{problem} is not fetched, and there is no file '{path}': `paperwasp models fetch` brings it where there "
        f"is a network, `paperwasp models add FILE --as '{name}'` takes over a file; or put it into the "
        "application package, named by 'path'. `paperwasp models list` says what else the package lacks"
    )
    try:
        target = path.resolve()
        if not target.is_relative_to(cache_folder().resolve()):
            raise NotFound(
                f"{problem} leads out of the model cache: '{path}' is behind a symbolic link to '{target}', and links "
                f"are not followed; `paperwasp models add '{target}' --as '{name}'` takes the file over"
            )
    except OSError:
        raise NotFound(missing) from None
    found = _CachedFile(target, missing)
    found.read(1)
    return ModelFile(name, found)
