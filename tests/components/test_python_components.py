"""Components written in Python: how they are loaded, what they are called with, and what becomes of what they do."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from paperwasp.components import Call, Chunker, Embedder, Generator, python_components
from paperwasp.components.python_components import PythonChunker, PythonComponent, PythonEmbedder, PythonGenerator, load
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import INT, STRING, array_of
from paperwasp.indexing.components import Context
from paperwasp.schema.files import Component, PackageFiles

LENGTHS = """
import numpy as np


class Lengths:
    def __init__(self, setup):
        self.factor = float(setup.settings.get("factor", 1))
        self.calls = []

    def embed(self, texts, call):
        self.calls.append(call)
        return [np.array([len(text), self.factor]) for text in texts]
"""
DOCUMENT = Context("music.vector", "en", ("a", "b"))
QUERY = Context("query(q)")


def files(**modules: str) -> PackageFiles:
    """Module (`a__b` for `a/b`) → its text."""
    return PackageFiles({f"components/{name.replace('__', '/')}.py": text.encode() for name, text in modules.items()})


def loaded(package: PackageFiles, class_name: str, **settings: str) -> PythonComponent:
    named = {f"config/{name}": text for name, text in settings.items()}
    return load(Component("component", "mine", "", class_name, "python", {"config@name": "x", **named}), package)


def component(text: str) -> PythonComponent:
    """That of the class C."""
    found = loaded(files(c=text), "c.C")
    assert found.problem == ""
    return found


def tensor(text: str, type_: str, texts: int = 1) -> Any:
    embedder = component(text).embedder
    assert embedder is not None
    made = embedder.embed(["text"] * texts, TensorType.parse(type_), DOCUMENT)
    return made[0]


def embed_giving(what: str) -> str:
    return f"class C:\n    def __init__(self, setup): pass\n    def embed(self, texts, call): return {what}\n"


def test_an_embedder_and_what_it_is_called_with() -> None:
    found = loaded(files(lengths=LENGTHS), "lengths.Lengths", factor="2.5")
    assert (found.chunker, found.generator) == (None, None)
    embedder = found.embedder
    assert embedder is not None
    type_ = TensorType.parse("tensor<float>(x[2])")
    first, second = embedder.embed(["a", "bcd"], type_, DOCUMENT)
    assert (first.type, first.labels, first.cells.tolist()) == (type_, ((),), [[1, 2.5]])
    assert first.cells.dtype == np.float32
    assert second.cells.tolist() == [[3, 2.5]]
    embedder.embed(["a"], type_, QUERY)
    of_document, of_query = found.object.calls
    assert (of_document.destination, of_document.is_query, of_document.language) == ("music.vector", False, "en")
    assert (of_document.arguments, of_document.type, of_document.size) == (("a", "b"), "tensor<float>(x[2])", 2)
    assert (of_query.destination, of_query.is_query) == ("query(q)", True)


@pytest.mark.parametrize(
    ("made", "type_", "labels", "cells"),
    [
        ("[[1, 2]]", "tensor<float>(x[2])", ((),), [[1, 2]]),
        ("[[1, 2, 3, 4]]", "tensor(x[2],y[2])", ((),), [[[1, 2], [3, 4]]]),
        ("[((1, 2), (3, 4))]", "tensor(x[2],y[2])", ((),), [[[1, 2], [3, 4]]]),
        ("[[1.75, -1, 200]]", "tensor<int8>(x[3])", ((),), [[1, -1, -56]]),
        ("[[1.001]]", "tensor<bfloat16>(x[1])", ((),), [[1.0]]),
        ("[{'a': 1, 2: 0.5}]", "tensor(t{})", (("a",), ("2",)), [1, 0.5]),
        ("[{'a': [1, 2], 'b': [3, 4]}]", "tensor(t{},x[2])", (("a",), ("b",)), [[1, 2], [3, 4]]),
        ("[{}]", "tensor(t{},x[2])", (), []),
    ],
)
def test_what_an_embedder_gives(made: str, type_: str, labels: object, cells: object) -> None:
    found = tensor(embed_giving(made), type_)
    assert (found.labels, found.cells.tolist()) == (labels, cells)


@pytest.mark.parametrize(
    ("made", "type_", "problem"),
    [
        ("[]", "tensor(x[1])", "the embedder gave 0 values for 1 texts"),
        ("[[1], [2]]", "tensor(x[1])", "the embedder gave 2 values for 1 texts"),
        ("[[1]]", "tensor(x[2])", "the embedder gave 1 numbers where tensor(x[2]) has 2"),
        ("['ab']", "tensor(x[2])", "the embedder gave a str that is not a vector of numbers"),
        ("[None]", "tensor(x[1])", "the embedder gave a number that is not finite"),
        ("[[1, float('nan')]]", "tensor(x[2])", "the embedder gave a number that is not finite, as double"),
        ("[[1e300]]", "tensor<float>(x[1])", "the embedder gave a number that is not finite, as float"),
        ("[[10 ** 400]]", "tensor(x[1])", "the embedder gave a list that is not a vector of numbers"),
        ("[[1]]", "tensor(t{},x[1])", "the embedder gave a list for tensor(t{},x[1]): label → vector is wanted"),
        ("[{}]", "tensor(s{},t{})", "the embedder gave a dict for tensor(s{},t{}): label → vector is wanted"),
        ("7", "tensor(x[1])", "TypeError: 'int' object is not iterable"),
        ("1 / 0", "tensor(x[1])", "components/c.py, line 3, in embed: ZeroDivisionError: division by zero"),
        ("exit(3)", "tensor(x[1])", "components/c.py, line 3, in embed: SystemExit: 3"),
    ],
)
def test_what_is_wrong_is_an_error_of_the_call(made: str, type_: str, problem: str) -> None:
    with pytest.raises(ValueError) as raised:
        tensor(embed_giving(made), type_)
    assert str(raised.value).startswith(problem)


def test_a_chunker_and_a_generator() -> None:
    found = component("""
class C:
    def __init__(self, setup):
        self.id = setup.id

    def chunk(self, text, call):
        assert (call.type, call.size) == ("array<string>", 0)
        return text.split(*call.arguments)

    def generate(self, prompt, call):
        return {"int": 7, "array<string>": [prompt, self.id], "string": None}[call.type]
""")
    chunker, generator = found.chunker, found.generator
    assert chunker is not None and generator is not None and found.embedder is None
    chunker.check(("x",))
    assert chunker.chunk("1x2x3", Context("a.b", "", ("x",))) == ["1", "2", "3"]
    generator.check(INT)
    assert generator.generate("p", INT, DOCUMENT) == 7
    assert generator.generate("p", array_of(STRING), DOCUMENT) == ["p", "mine"]
    assert generator.generate("p", STRING, DOCUMENT) is None


class Typed:
    """A class with type annotations, which the type checker holds to the protocols below."""

    def embed(self, texts: Sequence[str], call: Call) -> list[list[float]]:
        return [[1.0] * call.size for _ in texts]

    def chunk(self, text: str, call: Call) -> list[str]:
        return [text]

    def generate(self, prompt: str, call: Call) -> str:
        return prompt


def test_a_class_with_types_has_the_protocols() -> None:
    embedder: Embedder = Typed()
    chunker: Chunker = Typed()
    generator: Generator = Typed()
    assert PythonEmbedder(embedder).embed(["a"], TensorType.parse("tensor(x[1])"), DOCUMENT)[0].cells.tolist() == [
        [1.0]
    ]
    assert PythonChunker(chunker).chunk("a", DOCUMENT) == ["a"]
    assert PythonGenerator(generator).generate("a", STRING, DOCUMENT) == "a"


def test_a_chunk_that_is_no_text() -> None:
    chunker = component("class C:\n    def __init__(self, s): pass\n    def chunk(self, t, c): return [t, 7]").chunker
    assert chunker is not None
    with pytest.raises(ValueError, match="the chunker gave a int where a str is a chunk"):
        chunker.chunk("a", DOCUMENT)


def test_a_generated_value_of_another_type() -> None:
    generator = component(
        "class C:\n    def __init__(self, s): pass\n    def generate(self, p, c): return 'a'"
    ).generator
    assert generator is not None
    with pytest.raises(ValueError, match=r'^the generator gave a str for int: For input string: "a"$'):
        generator.generate("a", INT, DOCUMENT)


def test_a_number_where_a_text_is_generated() -> None:
    generator = component(
        "class C:\n    def __init__(self, s): pass\n    def generate(self, p, c): return 7.5"
    ).generator
    assert generator is not None
    with pytest.raises(ValueError, match=r"^the generator gave a float for string$"):
        generator.generate("a", STRING, DOCUMENT)


def test_files_of_the_package_can_be_read() -> None:
    text = "class C:\n    def __init__(self, setup): self.chunk, self.text = len, setup.read('models/../a.txt')"
    package = PackageFiles({"components/c.py": text.encode(), "a.txt": b"content"})
    assert loaded(package, "c.C").object.text == b"content"
    assert loaded(files(c=text), "c.C").problem == (
        "components/c.py, line 2, in __init__: FileNotFoundError: "
        "there is no file 'models/../a.txt' in the application package"
    )


@pytest.mark.parametrize(
    ("text", "name", "problem"),
    [
        ("", "c", "class 'c' must be module.Class, for a class in components/module.py"),
        ("", "c.d-e", "class 'c.d-e' must be module.Class"),
        ("", "d.C", "class 'd.C': there is no file components/d.py in the application package"),
        ("C = 7", "c.C", "class 'c.C': there is no class C in components/c.py"),
        ("class C:\n    def __init__(self, s): pass", "c.C", "class 'c.C' has no method embed or chunk or generate"),
        ("class C:\n    embed = 1", "c.C", "TypeError: C() takes no arguments"),
        ("import nowhere_at_all", "c.C", "components/c.py, line 1: ModuleNotFoundError: No module named 'nowhere_at_"),
        ("def f(:", "c.C", "components/c.py, line 1: SyntaxError: "),
        ("\n{}['key']", "c.C", "components/c.py, line 2: KeyError: 'key'"),
        (
            "class C:\n    def __init__(self, s):\n        raise RuntimeError",
            "c.C",
            "components/c.py, line 3, in __init__",
        ),
    ],
)
def test_what_cannot_be_loaded(text: str, name: str, problem: str) -> None:
    found = loaded(files(c=text), name)
    assert found.problem.startswith(problem) and found.object is None


def test_modules_import_each_other() -> None:
    package = files(
        c="from . import words\nfrom .more.deep import cut\nclass C(words.Base):\n    chunk = staticmethod(cut)",
        words="class Base:\n    def __init__(self, setup): self.name = __name__",
        more__deep="from .. import words\ndef cut(text, call):\n    from . import late\n    return late.parts(text)",
        more__late="def parts(text): return list(text)",
    )
    found = loaded(package, "c.C")
    assert found.problem == ""
    chunker = found.chunker
    assert chunker is not None and chunker.chunk("ab", DOCUMENT) == ["a", "b"]


def test_a_class_in_a_folder() -> None:
    text = "class C:\n    def __init__(self, s): pass\n    def chunk(self, t, c): return [t]"
    assert loaded(files(a__b=text), "a.b.C").problem == ""


def test_each_package_has_modules_of_its_own() -> None:
    text = "class C:\n    def __init__(self, s): pass\n    def chunk(self, t, c): return ['{}']"
    one, two = files(c=text.format("one")), files(c=text.format("two"))
    first, second = loaded(one, "c.C"), loaded(two, "c.C")
    assert loaded(one, "c.C") is first and loaded(one, "c.C", other="setting") is not first
    chunkers = first.chunker, second.chunker
    assert [each and each.chunk("", DOCUMENT) for each in chunkers] == [["one"], ["two"]]


def test_modules_go_with_their_package() -> None:
    def names() -> list[str]:
        return [name for name in sys.modules if name.startswith("_paperwasp_components_")]

    gc.collect()
    before, finders = names(), len(sys.meta_path)
    package = files(
        c="from . import d\nclass C:\n    def __init__(self, s): self.chunk = d.f", d="def f(t, c): return [t]"
    )
    found = loaded(package, "c.C")
    assert len(names()) == len(before) + 3 and len(sys.meta_path) == finders + 1
    chunker = found.chunker
    del package, found
    gc.collect()
    assert names() == before and len(sys.meta_path) == finders
    assert chunker is not None and chunker.chunk("still there", DOCUMENT) == ["still there"]


def test_a_place_outside_the_folder_is_not_told() -> None:
    try:
        raise ValueError("no")
    except ValueError as error:
        assert python_components.place_of(error) == "ValueError: no"
