"""The files of models and tokenizers that components name: in the application package, or in a folder of this machine.

    path        a file of the package
    url         <cache>/<host>/<path>, where somebody has put what is at that address
    model-id    <cache>/model-id/<id>

The first that is given, in this order, is used. Nothing is fetched: a service that fetched what a package names would
go wherever a package sends it, and start only where it can. The folder is that of PAPERWASP_MODEL_CACHE, else
~/.cache/paperwasp/models.

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

from paperwasp import limits
from paperwasp.errors import NotFound
from paperwasp.records import dataclass

_CACHE_VARIABLE: Final = "PAPERWASP_MODEL_CACHE"


class File(Protocol):
    """A file of the package (`schema.files.PackageFile`)."""

    def read(self) -> bytes: ...


Files = Mapping[str, File]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file that is there."""

    name: str
    """As messages name it: its path in the package, its address or its id."""
    content: bytes


def cache_folder() -> Path:
    """The folder for models that are not in packages."""
    named = os.environ.get(_CACHE_VARIABLE)
    return Path(named) if named else Path.home() / ".cache" / "paperwasp" / "models"


def find_model(setting: str, given: Mapping[str, str], files: Files) -> ModelFile | None:
    """The file that an element `setting` names by the attributes `given`; None: it names none.

    Errors: NotFound for a file that is not there, with the place where it is looked for; it may be there later.
    """
    if path := given.get("path", ""):
        found = files.get(posixpath.normpath(path))
        if found is None:
            raise NotFound(f"{setting}: file '{path}' is not in the application package")
        return ModelFile(path, found.read())
    if url := given.get("url", ""):
        return _cached(setting, "url", url, _place_of_url(url))
    if model := given.get("model-id", ""):
        return _cached(setting, "model-id", model, ("model-id", *_parts(model)))
    return None


def _place_of_url(url: str) -> tuple[str, ...]:
    """The path below the cache of what is at an address."""
    split = urlsplit(url)
    return ((split.hostname or ""), *_parts(unquote(split.path)))


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def _cached(setting: str, attribute: str, name: str, place: tuple[str, ...]) -> ModelFile:
    problem = f"{setting}: {attribute} '{name}'"
    if len(place) < 2 or any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in place):
        raise NotFound(f"{problem} cannot be a file of the model cache: put the file into the application package")
    path = cache_folder().joinpath(*place)
    try:
        if not path.resolve().is_relative_to(cache_folder().resolve()):
            raise NotFound(f"{problem} leads out of the model cache")
        with path.open("rb") as file:
            content = file.read(limits.MODEL_FILE_BYTES + 1)
    except OSError:
        raise NotFound(
            f"{problem} is not fetched, and there is no file '{path}': put it there, or into the application package, "
            f"named by 'path'"
        ) from None
    return ModelFile(name, content)
