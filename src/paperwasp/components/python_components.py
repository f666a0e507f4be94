"""Components written in Python: their modules, imported from memory; an object of each, made once; and their calls,
whose values are checked.

What goes wrong in a component is a ValueError with the place in its file: it is the error of one document or query.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import ExecutionLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import decode_source
from itertools import count
from math import prod
from posixpath import normpath
from types import ModuleType, TracebackType
from typing import Any, Final, TypeVar
from weakref import finalize

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp import components
from paperwasp.components import Setup
from paperwasp.document.converters import TextOfNumber, converter_of
from paperwasp.document.operations import Value
from paperwasp.document.tensor.algebra import converted
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import DataType
from paperwasp.indexing.components import Context
from paperwasp.schema.files import Component, PackageFiles

# The Python modules in a package's folder `components/`, imported from memory, each package in a namespace of its own.
#
#     components/a.py → <namespace>.a        components/b/c.py → <namespace>.b.c
#
# So two generations, or two applications, may have modules of the same names. Modules import each other relatively:
# `from . import a`. Names of the namespace go when nobody has the `Modules` any more; objects live on.


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
        """Return whether there is such a folder."""
        folder = f"{self._base(fullname)}/"
        return any(path.startswith(folder) for path in self._files)

    def get_filename(self, fullname: str) -> str:
        """The path in the package."""
        return (
            f"{self._base(fullname)}/__init__{_SUFFIX}" if self.is_package(fullname) else self._base(fullname) + _SUFFIX
        )

    def get_source(self, fullname: str) -> str:
        """The text of the module; empty for a folder without `__init__`."""
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


_CHUNKS: Final = "array<string>"
_Given = TypeVar("_Given")


class PythonEmbedder:
    """An object with `embed`."""

    def __init__(self, embedder: components.Embedder) -> None:
        self._embedder = embedder

    def check(self) -> None:
        """Nothing: it was made, which a deployment does."""

    def load(self) -> None:
        """Nothing: it is ready."""

    def check_type(self, type: TensorType, context: Context) -> None:
        """Nothing: it gets the type with the texts."""

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> list[Tensor]:
        """One tensor of the type for each text. Errors: ValueError."""
        call = _call(context, str(type), prod(type.shape))
        made = _called(lambda: list(self._embedder.embed(list(texts), call)))
        if len(made) != len(texts):
            raise ValueError(f"the embedder gave {len(made)} values for {len(texts)} texts")
        return [_tensor(each, type) for each in made]


class PythonChunker:
    """An object with `chunk`."""

    def __init__(self, chunker: components.Chunker) -> None:
        self._chunker = chunker

    def check(self, arguments: tuple[str, ...]) -> None:
        """Nothing: it gets them with each text."""

    def chunk(self, text: str, context: Context) -> list[str]:
        """The chunks of the text. Errors: ValueError."""
        call = _call(context, _CHUNKS)
        made = _called(lambda: list(self._chunker.chunk(text, call)))
        for each in made:
            if not isinstance(each, str):
                raise ValueError(f"the chunker gave a {type(each).__name__} where a str is a chunk")
        return made


class PythonGenerator:
    """An object with `generate`."""

    def __init__(self, generator: components.Generator) -> None:
        self._generator = generator

    def check(self, type: DataType) -> None:
        """Nothing: it gets the type with each prompt."""

    def generate(self, prompt: str, type: DataType, context: Context) -> Value | None:
        """A value of the type. Errors: ValueError."""
        call = _call(context, str(type))
        made = _called(lambda: self._generator.generate(prompt, call))
        return None if made is None else _value(made, type)


def _call(context: Context, type_: str, size: int = 0) -> components.Call:
    return components.Call(context.destination, context.is_query, context.language, context.arguments, type_, size)


def _called(call: Callable[[], _Given]) -> _Given:
    """The result of a call of a component. Errors: ValueError for whatever it raises."""
    try:
        return call()
    except (Exception, SystemExit) as error:
        raise ValueError(place_of(error)) from None


def _value(made: Any, type_: DataType) -> Value:
    """Errors: ValueError for what is not of the type."""
    problem = f"the generator gave a {type(made).__name__} for {type_}"
    try:
        return converter_of(type_)(made)
    except TextOfNumber:
        raise ValueError(problem) from None
    except ValueError as error:
        raise ValueError(f"{problem}: {error}") from None


def _tensor(made: Any, type_: TensorType) -> Tensor:
    """Errors: ValueError for what is not of the type."""
    if not type_.mapped:
        return Tensor(type_, ((),), _cells([made], type_))
    if len(type_.mapped) > 1 or not isinstance(made, Mapping):
        raise ValueError(f"the embedder gave a {type(made).__name__} for {type_}: label → vector is wanted")
    labels = tuple((str(label),) for label in made)
    return Tensor(type_, labels, _cells(list(made.values()), type_))


def _cells(vectors: Sequence[Any], type_: TensorType) -> NDArray[Any]:
    """The cells of some vectors, in the cell type."""
    size = prod(type_.shape)
    cells = np.zeros((len(vectors), size))
    for row, vector in zip(cells, vectors, strict=True):
        try:
            numbers = np.asarray(vector, dtype=np.float64).reshape(-1)
        except (ValueError, TypeError, OverflowError):
            raise ValueError(f"the embedder gave a {type(vector).__name__} that is not a vector of numbers") from None
        if len(numbers) != size:
            raise ValueError(f"the embedder gave {len(numbers)} numbers where {type_} has {size}")
        row[:] = numbers
    fitting = converted(cells, type_.cell_type)
    if not (np.isfinite(cells).all() and np.isfinite(fitting).all()):
        raise ValueError(f"the embedder gave a number that is not finite, as {type_.cell_type}")
    return fitting.reshape(len(vectors), *type_.shape)


# From a component of services.xml with `bundle="python"` to an object of its class, made once for each model.
#
# The modules of a package have one namespace, which lives as long as the files that they came with: another deployment
# has files of its own, and loads all again.


BUNDLE: Final = "python"
FLAG: Final = "--allow-python-components"
_CONFIG: Final = "config/"
_METHODS: Final = {"component": ("embed", "chunk", "generate"), "filter": ("filter",)}
"""By kind, those of which an object has one at least."""


class PythonComponent(Struct, frozen=True, eq=False):
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
    """Return whether a component is written in Python."""
    return component.kind in _METHODS and component.bundle == BUNDLE


def load(component: Component, files: PackageFiles) -> PythonComponent:
    """The object of a component, made at the first call for these files."""
    key = component.kind, component.id, component.class_name, tuple(sorted(component.settings.items()))
    return files.once(("python component", *key), lambda: _load(component, files))


def _load(component: Component, files: PackageFiles) -> PythonComponent:
    modules = files.once(
        "python modules",
        lambda: Modules(
            {path: files[path].read() for path in files if path.startswith(FOLDER) and path.endswith(".py")}
        ),
    )
    settings = {
        name.removeprefix(_CONFIG): text
        for name, text in component.settings.items()
        if not name.startswith("config@")  # which names the `config`
    }
    setup = Setup(component.id, settings, lambda path: _read(path, files))
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


def _read(path: str, files: PackageFiles) -> bytes:
    found = normpath(path)
    if found not in files:
        raise FileNotFoundError(f"there is no file '{path}' in the application package")
    return files[found].read()
