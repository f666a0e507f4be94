"""The Python modules in a package's folder `components/`, imported from memory, each package in a namespace of its own.

    components/a.py → <namespace>.a        components/b/c.py → <namespace>.b.c

So two generations, or two applications, may have modules of the same names. Modules import each other relatively:
`from . import a`. Names of the namespace go when nobody has the `Modules` any more; objects live on.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import ExecutionLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import decode_source
from itertools import count
from types import ModuleType, TracebackType
from typing import Final
from weakref import finalize

FOLDER: Final = "components/"
_PREFIX: Final = "_paperwasp_components_"
_SUFFIX: Final = ".py"
_NUMBERS: Final = count()


class NoClass(Exception):
    """A name that is not that of a class in the folder."""


class Modules:
    """The modules of one package."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        """`files`: the contents of `.py` files by their paths in the package."""
        finder = _Finder(f"{_PREFIX}{next(_NUMBERS)}", files)
        self._namespace = finder.namespace
        sys.meta_path.append(finder)
        finalize(self, _forget, finder)

    def find_class(self, name: str) -> type:
        """The class `module.Class`. Errors: NoClass that says why; what importing the module raises."""
        module_name, _, class_name = name.rpartition(".")
        if not module_name or not all(part.isidentifier() for part in name.split(".")):
            raise NoClass(f"class '{name}' must be module.Class, for a class in {FOLDER}module.py")
        whole = f"{self._namespace}.{module_name}"
        try:
            module = import_module(whole)
        except ModuleNotFoundError as error:
            if error.name is None or not whole.startswith(error.name):
                raise
            raise NoClass(f"class '{name}': there is no file {_path(module_name)} in the application package") from None
        found = getattr(module, class_name, None)
        if not isinstance(found, type):
            raise NoClass(f"class '{name}': there is no class {class_name} in {_path(module_name)}")
        return found


def _path(module_name: str) -> str:
    return FOLDER + module_name.replace(".", "/") + _SUFFIX


def place_of(error: BaseException) -> str:
    """The message of an error, with its place in the folder: `components/a.py, line 7, in embed: ValueError: no`."""
    message = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frame = _last_frame(error.__traceback__)
    return f"{frame}: {message}" if frame else message


def _last_frame(traceback: TracebackType | None) -> str:
    """The innermost place in the folder."""
    found = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename.startswith(FOLDER):
            where = "" if code.co_name == "<module>" else f", in {code.co_name}"
            found = f"{code.co_filename}, line {traceback.tb_lineno}{where}"
        traceback = traceback.tb_next
    return found


class _Finder(MetaPathFinder, ExecutionLoader):
    """Finds and loads the modules of one namespace."""

    def __init__(self, namespace: str, files: Mapping[str, bytes]) -> None:
        self.namespace = namespace
        self._files = dict(files)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module of that name; None: it is not of this namespace, or there is none."""
        if fullname != self.namespace and not fullname.startswith(f"{self.namespace}."):
            return None
        base = self._base(fullname)
        if self.is_package(fullname):
            return ModuleSpec(fullname, self, origin=f"{base}/__init__{_SUFFIX}", is_package=True)
        return ModuleSpec(fullname, self, origin=base + _SUFFIX) if base + _SUFFIX in self._files else None

    def is_package(self, fullname: str) -> bool:
        """Whether there is such a folder."""
        folder = f"{self._base(fullname)}/"
        return any(path.startswith(folder) for path in self._files)

    def get_filename(self, fullname: str) -> str:
        """The path in the package."""
        return (
            f"{self._base(fullname)}/__init__{_SUFFIX}" if self.is_package(fullname) else self._base(fullname) + _SUFFIX
        )

    def get_source(self, fullname: str) -> str:
        """The text of the module; empty for a folder without `__init__.py`."""
        return decode_source(self._files.get(self.get_filename(fullname), b""))

    def _base(self, fullname: str) -> str:
        below = fullname.removeprefix(self.namespace).removeprefix(".").replace(".", "/")
        return f"{FOLDER}{below}".removesuffix("/")


def _forget(finder: _Finder) -> None:
    if finder in sys.meta_path:
        sys.meta_path.remove(finder)
    prefix = f"{finder.namespace}."
    for name in [name for name in sys.modules if name == finder.namespace or name.startswith(prefix)]:
        del sys.modules[name]
