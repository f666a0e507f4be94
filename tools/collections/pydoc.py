"""The collection that every machine has: what the standard library says of itself, and judgments of our own.

The queries and judgments are in `examples/pydoc/judged`, with the names of things as the ids of documents.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from paperwasp.relevance.collection import read_judgments, read_queries
from tools.collections.collection import JUDGMENTS, QUERIES, Collection, Document

NAME: Final = "pydoc"
FOLDER: Final = Path(__file__).parents[2] / "examples" / "pydoc"
JUDGED: Final = FOLDER / "judged"


def read_pydoc() -> Collection:
    """The public and documented things of the standard library of the Python that runs this, and what is judged of
    them."""
    reader = _reader()
    library = [root for root in reader.installation_roots() if root.package == "python"]
    wanted = (each["fields"] for each in reader.documents(library))
    documents = [
        Document(fields["qualified_name"], _words_of(fields["qualified_name"]), fields["documentation"])
        for fields in wanted
        if fields["is_public"] and fields["documentation"]
    ]
    return Collection(documents, read_queries(JUDGED / QUERIES), read_judgments(JUDGED / JUDGMENTS)).known()


def _words_of(name: str) -> str:
    """The words of a name, which not every tokenizer takes apart."""
    return name.replace(".", " ").replace("_", " ")


def _reader() -> ModuleType:
    """The demo's reader of docstrings."""
    spec = importlib.util.spec_from_file_location("index_pydoc", FOLDER / "index_pydoc.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
