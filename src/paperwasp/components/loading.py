"""From a component of services.xml with `bundle="python"` to an object of its class, made once for each model.

The modules of a package have one namespace, which lives as long as the files that they came with: another deployment
has files of its own, and loads all again.
"""

from __future__ import annotations

from posixpath import normpath
from typing import Any, Final

from paperwasp.base.records import dataclass
from paperwasp.components import Setup
from paperwasp.components.python_components import PythonChunker, PythonEmbedder, PythonGenerator
from paperwasp.components.python_modules import FOLDER, Modules, NoClass, place_of
from paperwasp.schema.files import Component, PackageFiles

BUNDLE: Final = "python"
FLAG: Final = "--allow-python-components"
_CONFIG: Final = "config/"
_METHODS: Final = {"component": ("embed", "chunk", "generate"), "filter": ("filter",)}
"""By kind, those of which an object has one at least."""


@dataclass(frozen=True, eq=False)
class PythonComponent:
    """An object with some of the methods, or why there is none."""

    object: Any = None
    problem: str = ""
    modules: Modules | None = None
    """Held, since what is imported while it runs is found there."""

    @property
    def embedder(self) -> PythonEmbedder | None:
        return PythonEmbedder(self.object) if hasattr(self.object, "embed") else None

    @property
    def chunker(self) -> PythonChunker | None:
        return PythonChunker(self.object) if hasattr(self.object, "chunk") else None

    @property
    def generator(self) -> PythonGenerator | None:
        return PythonGenerator(self.object) if hasattr(self.object, "generate") else None


def is_python(component: Component) -> bool:
    """Whether a component is written in Python."""
    return component.kind in _METHODS and component.bundle == BUNDLE


def load(component: Component, files: PackageFiles) -> PythonComponent:
    """The object of a component, made at the first call for these files."""
    key = component.kind, component.id, component.class_name, tuple(sorted(component.settings.items()))
    return files.once(("python component", *key), lambda: _load(component, files))


def _load(component: Component, files: PackageFiles) -> PythonComponent:
    modules = files.once("python modules", lambda: Modules(_sources(files)))
    setup = Setup(component.id, _settings(component), lambda path: _read(path, files))
    try:
        found = modules.find_class(component.class_name or component.id)(setup)
    except NoClass as error:
        return PythonComponent(problem=str(error))
    except (Exception, SystemExit) as error:
        return PythonComponent(problem=place_of(error))
    methods = _METHODS[component.kind]
    if not any(callable(getattr(found, method, None)) for method in methods):
        name = component.class_name or component.id
        return PythonComponent(problem=f"class '{name}' has no method {' or '.join(methods)}")
    return PythonComponent(found, modules=modules)


def _sources(files: PackageFiles) -> dict[str, bytes]:
    return {path: files[path].read() for path in files if path.startswith(FOLDER) and path.endswith(".py")}


def _settings(component: Component) -> dict[str, str]:
    """The settings by name: those in a `config`, and those beside it. What names the `config` is none."""
    return {path.removeprefix(_CONFIG): text for path, text in component.settings.items() if not _names_config(path)}


def _names_config(path: str) -> bool:
    return path.startswith("config@")


def _read(path: str, files: PackageFiles) -> bytes:
    found = normpath(path)
    if found not in files:
        raise FileNotFoundError(f"there is no file '{path}' in the application package")
    return files[found].read()
