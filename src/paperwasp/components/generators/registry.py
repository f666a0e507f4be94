"""From the components of an application to its generators, and what is wrong with a component.

A client of a language model is shared by all that have the same component: its limit of requests at a time holds for
all schemas together. A generator that cannot be used is there all the same, and says why when it is called.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final
from weakref import WeakValueDictionary

from paperwasp.components.generators.config import check_names
from paperwasp.components.generators.field_generator import DEFINITION, FieldGenerator, File
from paperwasp.components.generators.language_models import (
    LOCAL,
    SERVICES,
    ChatCompletions,
    LanguageModel,
    LocalModel,
    check_language_model,
)
from paperwasp.document.operations import Value
from paperwasp.document.types import DataType
from paperwasp.errors import Finding
from paperwasp.indexing.components import Generator
from paperwasp.indexing.context import Context
from paperwasp.schema.files import Component

_FIELD_GENERATOR: Final = "ai.vespa.llm.generation.LanguageModelFieldGenerator"
_Key = tuple[str, str, tuple[tuple[str, str], ...]]
_SHARED: Final[WeakValueDictionary[_Key, ChatCompletions]] = WeakValueDictionary()
_LOCK: Final = threading.Lock()


class Unusable:
    """A generator that cannot be used."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def check(self, type: DataType) -> None:
        """Nothing: the deployment has reported the reason."""

    def generate(self, prompt: str, type: DataType, context: Context) -> Value | None:
        """Errors: ValueError, always."""
        raise ValueError(self._reason)


def is_executed(component: Component) -> bool:
    """Whether a component is a generator or a language model that can be run."""
    return component.class_name in (_FIELD_GENERATOR, LOCAL, *SERVICES)


def generators_of(components: Sequence[Component], files: Mapping[str, File]) -> Mapping[str, Generator]:
    """Id → generator."""
    models = _models(components)
    found: dict[str, Generator] = {}
    for component in components:
        if component.class_name == _FIELD_GENERATOR:
            try:
                found[component.id] = FieldGenerator(component, models, files)
            except ValueError as error:
                found[component.id] = Unusable(f"component '{component.id}': {error}")
    return MappingProxyType(found)


def check_components(components: Sequence[Component], files: Mapping[str, File]) -> Iterator[Finding]:
    """What a deployment tells of the generators and language models of an application."""
    models = _models(components)
    for component in components:
        try:
            if component.class_name in SERVICES:
                yield from check_language_model(component)
            elif component.class_name == LOCAL:
                yield Finding(LocalModel(component).reason, component.position, "WARNING")
            elif component.class_name == _FIELD_GENERATOR:
                yield from check_names(component, DEFINITION)
                FieldGenerator(component, models, files)
        except ValueError as error:
            yield Finding(f"component '{component.id}': {error}", component.position, "ERROR")


def _models(components: Sequence[Component]) -> Mapping[str, LanguageModel]:
    """The language models that can be named. What is wrong with others is reported for themselves."""
    found: dict[str, LanguageModel] = {}
    for component in components:
        if component.class_name == LOCAL:
            found[component.id] = LocalModel(component)
        if component.class_name in SERVICES:
            try:
                found[component.id] = _shared(component)
            except ValueError:
                continue
    return found


def _shared(component: Component) -> ChatCompletions:
    """The client of a component; the same one as long as somebody has it. Errors: ValueError."""
    key = component.id, component.class_name, tuple(sorted(component.settings.items()))
    with _LOCK:
        found = _SHARED.get(key)
        if found is None:
            found = _SHARED[key] = ChatCompletions(component)
        return found
