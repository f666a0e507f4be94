"""The settings of one component with their defaults: what its elements say, as services.xml has checked them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

from paperwasp.components.embedders.model_files import MODEL_ATTRIBUTES, Files, ModelFile, find_model
from paperwasp.ranking.onnx.session import SessionSettings
from paperwasp.schema.files import Component

_INTRAOP_THREADS = 4


class Settings:
    """The settings of a component, and the files that it may name."""

    def __init__(self, component: Component, files: Files) -> None:
        self.id = component.id
        self.type = component.type
        self._given: Mapping[str, str] = component.settings
        self._files = files

    def text(self, name: str, default: str = "") -> str:
        return self._given.get(name, default)

    def integer(self, name: str, default: int) -> int:
        return int(self._given[name]) if name in self._given else default

    def number(self, name: str, default: float) -> float:
        return float(self._given[name]) if name in self._given else default

    def flag(self, name: str, default: bool = False) -> bool:
        return self._given[name] == "true" if name in self._given else default

    def is_given(self, name: str) -> bool:
        """Whether there is such an element, or something in it."""
        return any(path.partition("@")[0] == name for path in self._given)

    def repeated(self, name: str) -> list[str]:
        """The names of an element that may be there several times, as the other methods take them."""
        names = {path.partition("@")[0] for path in self._given}
        return sorted(each for each in names if each.partition("#")[0] == name)

    def model(self, name: str) -> ModelFile:
        """The file that an element names. Errors: NotFound; ValueError where it names none."""
        given = {attribute: self._given.get(f"{name}@{attribute}", "") for attribute in MODEL_ATTRIBUTES}
        found = find_model(name, given, self._files)
        if found is None:
            raise ValueError(f"'{name}' is needed: it names a file of the application package by 'path'")
        return found

    def session(self) -> SessionSettings:
        """How the model is run, within the processors that there are: one is left to others, unless it is said how many
        are to be used."""
        others = max(1, (os.cpu_count() or 1) - 1)
        return SessionSettings(
            intraop_threads=_threads(self.integer("onnx-intraop-threads", min(_INTRAOP_THREADS, others))),
            interop_threads=_threads(self.integer("onnx-interop-threads", 1)),
            parallel=self.text("onnx-execution-mode") == "parallel",
            gpu_device=self.integer("onnx-gpu-device", 0),
            spins=False,
            optimizes=self.flag("onnx-optimize-model", True),
        )


def _threads(wanted: int) -> int:
    """A number of threads; of 0 or less: all processors, or that part of them. More than there are helps nobody."""
    processors = os.cpu_count() or 1
    return min(wanted, processors) if wanted > 0 else math.ceil(processors / max(1, -wanted))
