"""Applications with their documents and queries: those of the golden scripts, which use every feature there is."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

import orjson

from tests.application.model_evaluation.packages import files as model_files

_ROOT: Final = Path(__file__).parents[2]
_SERVICE: Final = _ROOT / "tests" / "service"
_SCRIPTS: Final = (
    *("query", "grouping", "purchase", "matching", "phase", "hybrid", "override", "chain", "chunk", "explain"),
    *("streaming", "grouping_value", "grouping_import"),
)


@dataclass(frozen=True)
class Seed:
    """An application: its files, documents to feed, and requests to begin from."""

    name: str
    files: Mapping[str, bytes]
    documents: tuple[Mapping[str, Any], ...]
    queries: tuple[Mapping[str, str], ...]
    """Parameters of searches."""
    texts: tuple[str, ...] = field(default=())
    """All statements, of which pieces are taken."""

    @property
    def types(self) -> list[str]:
        """The document types that documents are of."""
        return sorted({document["put"].split(":")[2] for document in self.documents})


def load_seeds() -> list[Seed]:
    """All of them, in a fixed order."""
    return [_seed(name) for name in _SCRIPTS]


def package(files: Mapping[str, bytes]) -> bytes:
    """The files as a zip."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _seed(name: str) -> Seed:
    folder = _SERVICE / f"{name}_scripts"
    root = folder / "application"
    files = {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
    files["services.xml"] = files["services.xml"].replace(b"<document-api/>", b"<document-api/><model-evaluation/>")
    if name == "streaming":
        files["services.xml"] = files["services.xml"].replace(b'mode="index"', b'mode="streaming"')
    for path, content in model_files().items():
        files.setdefault(path, content if isinstance(content, bytes) else content.encode())
    lines = (folder / "documents.jsonl").read_bytes().splitlines()
    queries = [query for script in sorted(folder.glob("*.txt")) for query in _queries(script.read_text())]
    assert queries, name
    texts = tuple(sorted({value for query in queries for value in query.values()}))
    return Seed(name, files, tuple(orjson.loads(line) for line in lines), tuple(queries), texts)


def _queries(script: str) -> list[dict[str, str]]:
    """The parameters of the cases of a script, as far as they are written as the scripts of queries are."""
    found: list[dict[str, str]] = []
    for case in script.split("\n\n"):
        lines = [line for line in case.partition("\n---")[0].splitlines() if line and not line.startswith("#")]
        if not lines or lines[0].startswith("POST"):
            continue
        if lines[0].startswith("GET"):
            found.append(dict(parse_qsl(lines[0].partition(" ")[2])))
            continue
        given = dict(line.split("=", 1) for line in lines[1:] if "=" in line)
        first = lines[0]
        if first.startswith("where"):
            given["yql"] = f"select * from sources * {first}"
        elif first.startswith("select "):
            given["yql"] = first
        elif first.startswith(("all(", "each(")):
            given["yql"] = f"select * from sources * where true | {first}"
        found.append(given)
    return found
