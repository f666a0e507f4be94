"""The demo application: what is read out of sources, and that its schema is right."""

from __future__ import annotations

from pathlib import Path

from index_pydoc import Root, documents, installation_roots
from paperwasp.application.build import build_model
from paperwasp.application.package import load_package
from paperwasp.search.features import check_profiles

EXAMPLE = Path(__file__).parents[2] / "examples" / "pydoc"
SOURCE = '''"""A module."""
import nothing_that_exists

if True:
    def outer(a: int, *, b="x") -> str:
        """Outer words here."""
        def inner(): "not indexed"

class Shape(Base, metaclass=Meta):
    """A shape."""
    async def area(self): ...
    class Error(Exception): pass
'''


def read(tmp_path: Path, files: dict[str, bytes]) -> dict[str, dict[str, object]]:
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    found = list(documents([Root(tmp_path, "here")]))
    assert [document["put"] for document in found] == [
        f"id:python:pydoc::{d['fields']['qualified_name']}" for d in found
    ]
    return {document["fields"]["qualified_name"]: document["fields"] for document in found}


def test_every_definition_becomes_a_document(tmp_path: Path) -> None:
    found = read(tmp_path, {"shapes/__init__.py": SOURCE.encode(), "shapes/tests/test_x.py": b"def no(): ..."})
    assert {name: fields["kind"] for name, fields in found.items()} == {
        "shapes": "module",
        "shapes.outer": "function",
        "shapes.Shape": "class",
        "shapes.Shape.area": "method",
        "shapes.Shape.Error": "class",
    }
    outer = found["shapes.outer"]
    assert outer["signature"] == "def outer(a: int, *, b='x') -> str"
    assert (outer["documentation"], outer["documentation_words"], outer["depth"]) == ("Outer words here.", 3, 2)
    assert (outer["module"], outer["package"], outer["is_public"]) == ("shapes", "here", True)
    assert found["shapes.Shape"]["signature"] == "class Shape(Base)"
    assert found["shapes.Shape.area"]["signature"] == "async def area(self)"


def test_what_is_no_python_is_skipped(tmp_path: Path) -> None:
    files = {
        "broken.py": b"def (",
        "null.py": b"x = 1\x00",
        "unknown.py": b"# coding: no-such-encoding\n",
        "latin.py": '# coding: latin-1\n"""Caf\xe9."""'.encode("latin-1"),
        "not-a-module.py": b"pass",
        "control.py": b'"""A bell \\x07 and a null \\x00 and \\ud800."""',
    }
    found = read(tmp_path, files)
    assert {name: fields["documentation"] for name, fields in found.items()} == {
        "latin": "Café.",
        "control": "A bell  and a null  and .",
    }


def test_named_packages_alone_are_read(tmp_path: Path) -> None:
    for name in ("one/__init__.py", "one/part.py", "other/__init__.py", "single.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    roots = [Root(tmp_path, None)]
    read_names = [document["fields"]["qualified_name"] for document in documents(roots, ["one", "single"])]
    assert read_names == ["one", "one.part", "single"]
    assert not list(documents([Root(tmp_path, "python")], ["one"])), "the distribution's name is its package"
    assert len(list(documents([Root(tmp_path, "python")], ["python"]))) == 4


def test_the_installation_has_much_to_say() -> None:
    assert any((root.folder / "json" / "__init__.py").exists() for root in installation_roots())


def test_the_application_is_valid() -> None:
    model = build_model(load_package(EXAMPLE / "application"), check_profiles)
    assert set(model.schemas["pydoc"].rank_profiles) >= {"default", "names", "longest", "unranked"}
    assert not model.findings
