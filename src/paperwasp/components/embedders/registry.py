"""From the components of an application to its embedders, and what is wrong with a component.

An embedder is shared by all that name the same component with the same files: the containers, and the content nodes
that index documents again. What cannot be used is there all the same, and says why to whoever asks it for a tensor.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from posixpath import normpath
from types import MappingProxyType
from typing import Final
from weakref import WeakValueDictionary

from paperwasp.components.embedders import colbert, http_services, splade, text_tokenizer, vectors
from paperwasp.components.embedders.base import FACTORIES, LocalOrRemote, Settings, TextEmbedder
from paperwasp.components.embedders.model_files import Files
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import Finding, LanguageError, NotFound, PaperwaspError
from paperwasp.indexing.components import Context
from paperwasp.ranking.onnx.session import has_gpu
from paperwasp.schema.files import Component

_TYPES = (colbert, http_services, splade, text_tokenizer, vectors)
"""Imported, they have registered their classes."""

_NO_EFFECT: Final[Mapping[str, str]] = {
    "batching": "what waits together is run together, and nothing waits for more",
    "concurrency": "one run of documents and one of queries are beside each other",
    "model-config-override": "there is no file of the runtime to override",
}
_LOOKS_SECONDS: Final = 1.0
_Key = tuple[str, str, tuple[tuple[str, str], ...], tuple[bytes, ...]]
_SHARED: Final[WeakValueDictionary[_Key, LocalOrRemote]] = WeakValueDictionary()
_LOCK: Final = threading.RLock()


class Unavailable:
    """An embedder that cannot be used."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> Sequence[Tensor]:
        """Errors: ValueError, always."""
        raise ValueError(self._reason)

    def check(self) -> None:
        """Nothing: a deployment has reported it."""

    def check_type(self, type: TensorType, context: Context) -> None:
        """Nothing: it makes tensors of no type."""

    def load(self) -> None:
        """Nothing."""


class LateEmbedder:
    """An embedder whose files are not there yet. It looks for them again when it is used, once a second at most."""

    def __init__(self, component: Component, files: Files, reason: str) -> None:
        self._component = component
        self._files = files
        self._reason = reason
        self._lock = threading.Lock()
        self._looked_seconds = time.monotonic()
        self._found: LocalOrRemote | None = None

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> Sequence[Tensor]:
        """Errors: ValueError as long as a file is missing; as the embedder itself."""
        return self._embedder().embed(texts, type, context)

    def check(self) -> None:
        """Nothing: a deployment has reported it."""

    def check_type(self, type: TensorType, context: Context) -> None:
        """Errors: as the embedder, once it is there."""
        if self._found is not None:
            self._found.check_type(type, context)

    def load(self) -> None:
        """Nothing."""

    def _embedder(self) -> LocalOrRemote:
        with self._lock:
            if self._found is None and time.monotonic() - self._looked_seconds >= _LOOKS_SECONDS:
                self._found = self._look()
                self._looked_seconds = time.monotonic()
            if self._found is None:
                raise ValueError(self._reason)
            return self._found

    def _look(self) -> LocalOrRemote | None:
        """The embedder, tried as a deployment tries it. None: it cannot be used, for a reason that is noted."""
        try:
            found = _shared(self._component, self._files)
            found.check()
        except LanguageError as error:
            self._reason = f"{_described(self._component)}: {error.bare_message}"
        except (PaperwaspError, ValueError) as error:
            self._reason = f"{_described(self._component)}: {error}"
        else:
            return found
        return None


def is_executed(component_type: str) -> bool:
    """Return whether there is an embedder of that type."""
    return component_type in FACTORIES


def is_embedder(component: Component) -> bool:
    """Return whether a component is one that `embed` may name, executed or not."""
    if component.kind != "component":
        return False
    name = component.type or (component.class_name or component.id).partition(":")[0].lower()
    return name.endswith(("embedder", "tokenizer"))


def embedders_of(components: Sequence[Component], files: Files) -> Mapping[str, LocalOrRemote]:
    """Id → embedder. Those of which nothing can be made now say so when they are used."""
    return MappingProxyType({each.id: _usable(each, files) for each in components if is_embedder(each)})


def load_models(embedders: Iterable[object]) -> None:
    """Loads the models that run in this process, so that the first text does not wait for that.

    What cannot be loaded says so when it is used.
    """
    for each in embedders:
        if isinstance(each, TextEmbedder):
            with suppress(PaperwaspError):
                each.load()


def check_components(components: Sequence[Component], files: Files) -> Iterator[Finding]:
    """Find the problems of an application's embedders: errors; warnings where a file may still come."""
    for component in components:
        yield from _check(component, files)


def _check(component: Component, files: Files) -> Iterator[Finding]:
    if not is_executed(component.type):
        return
    what = _described(component)
    for name, why in _without_effect(component):
        yield Finding(f"{what}: {name} is accepted without effect: {why}", component.position, "INFO")
    try:
        found = _shared(component, files)
        found.check()
        if isinstance(found, TextEmbedder):
            yield from (Finding(f"{what}: {note}", component.position, "WARNING") for note in found.notes())
    except NotFound as error:
        if all(path in files for path in _paths(component)):  # the check of references reports others
            yield Finding(f"{what}: {error.message}", component.position, "WARNING")
    except LanguageError as error:
        yield Finding(f"{what}: {error.bare_message}", component.position, "ERROR")
    except (PaperwaspError, ValueError) as error:
        yield Finding(f"{what}: {error}", component.position, "ERROR")


def _without_effect(component: Component) -> Iterator[tuple[str, str]]:
    """The settings of the runtime that change nothing here, and why."""
    said = {path.partition("@")[0] for path in component.settings}
    for name, why in _NO_EFFECT.items():
        if name in said and "transformer-model" in said:
            yield name, why
    if int(component.settings.get("onnx-gpu-device", "-1")) >= 0 and not has_gpu():
        yield "onnx-gpu-device", "the onnxruntime that is installed has no CUDA, so processors run the model"


def _paths(component: Component) -> list[str]:
    """The files of the package that it names."""
    return [normpath(path) for name, path in sorted(component.settings.items()) if name.endswith("@path")]


def _usable(component: Component, files: Files) -> LocalOrRemote:
    what = _described(component)
    if not is_executed(component.type):
        kind = f"of type '{component.type}'" if component.type else f"of class '{component.class_name}'"
        return Unavailable(f"{what} {kind} is not executed yet")
    try:
        return _shared(component, files)
    except NotFound as error:
        return LateEmbedder(component, files, f"{what}: {error}")
    except (PaperwaspError, ValueError) as error:
        return Unavailable(f"{what}: {error}")


def _described(component: Component) -> str:
    return f"{component.kind} '{component.id}'"


def _shared(component: Component, files: Files) -> LocalOrRemote:
    """The embedder of a component; the same one as long as somebody has it. Errors: as its class."""
    settings = Settings(component, files)
    digests = tuple(sha256(files[path].read()).digest() for path in _paths(component) if path in files)
    key = component.id, component.type, tuple(sorted(component.settings.items())), digests
    with _LOCK:
        found = _SHARED.get(key)
        if found is None:
            found = _SHARED[key] = FACTORIES[component.type](settings)
        return found
