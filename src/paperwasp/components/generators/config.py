"""The settings in the `config` element of a component: which there are, of which kind, and what they are by default.

Vespa: the definitions llm-client.def and language-model-field-generator.def
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from paperwasp.errors import Finding
from paperwasp.schema.files import Component
from paperwasp.text.parsing.nearest import did_you_mean

_CONFIG: Final = "config/"


class Kind(NamedTuple):
    """A kind of setting."""

    description: str
    read: Callable[[str], Any]
    """From the text in services.xml. Errors: ValueError."""


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def choice(*names: str) -> Kind:
    """One of these words."""

    def read(text: str) -> str:
        if text not in names:
            raise ValueError
        return text

    return Kind(" or ".join(names), read)


TEXT: Final = Kind("text", str)
INTEGER: Final = Kind("a whole number", int)
NUMBER: Final = Kind("a number", _number)
BOOLEAN: Final = Kind("true or false", {"true": True, "false": False}.__getitem__)

Definition = Mapping[str, tuple[Kind, Any]]
"""Name of a setting → its kind and default."""


class Config:
    """The settings of one component."""

    def __init__(self, component: Component, definition: Definition) -> None:
        """Errors: ValueError for a value of another kind."""
        self._values = {name: default for name, (_, default) in definition.items()}
        for name, text in _given(component):
            kind = definition[name][0] if name in definition else None
            if kind is not None and text:
                self._values[name] = _read(name, text, kind)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]


def check_names(component: Component, definition: Definition) -> Iterator[Finding]:
    """Warns of settings that there are not."""
    for name, _ in _given(component):
        if name not in definition:
            message = f"{component.kind} '{component.id}': there is no setting '{name}'{did_you_mean(name, definition)}"
            yield Finding(message, component.position, "WARNING")


def _given(component: Component) -> Iterator[tuple[str, str]]:
    for path, text in component.settings.items():
        name = path.removeprefix(_CONFIG)
        if name != path and "@" not in name:
            yield name, text


def _read(name: str, text: str, kind: Kind) -> Any:
    try:
        return kind.read(text)
    except (ValueError, KeyError):
        raise ValueError(f"'{name}' must be {kind.description}, not '{text[:100]}'") from None
