"""Golden scripts of the schema language: cases between lines of `====`, each `input`, a line `---`, `output`.

The lines before the first case name the script's authority. Input is one schema file, or several after lines
`### path`. PAPERWASP_REWRITE_SCRIPTS=1 writes what the code says into the script instead of comparing.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from paperwasp.errors import PaperwaspError
from paperwasp.schema import RankProfile, Schema, parse_schemas
from paperwasp.schema.syntax import dump, parse_profile_text, parse_schema_text

SCRIPTS = Path(__file__).parent / "scripts"
DEFAULT_PATH = "schemas/music.sd"


def run(path: Path, answer: Callable[[str], str]) -> None:
    """Compares `answer` of each input of a script with its output, or rewrites the script."""
    head, *cases = path.read_text().split("====\n")
    parts = [case.partition("---\n")[::2] for case in cases]
    if os.environ.get("PAPERWASP_REWRITE_SCRIPTS"):
        path.write_text(head + "".join(f"====\n{text}---\n{answer(text)}" for text, _ in parts))
    for text, expected in parts:
        assert answer(text) == expected, f"{path.name}:\n{text}"


def syntax(text: str) -> str:
    """The dump of the tree of a schema, or the error."""
    parser = parse_profile_text if text.startswith("rank-profile") else parse_schema_text
    try:
        return dump(parser(text, "music.sd"))
    except PaperwaspError as error:
        return f"{error}\n"


def meaning(text: str) -> str:
    """The schemas as lines, with the notes; or all problems."""
    try:
        found = parse_schemas(files_of(text))
    except PaperwaspError as error:
        return f"{error}\n"
    lines = [line for schema in found.schemas.values() for line in describe(schema)]
    return "".join(f"{line}\n" for line in [*lines, *(f"note: {note}" for note in found.notes)])


def files_of(text: str) -> dict[str, str]:
    if not text.startswith("### "):
        return {DEFAULT_PATH: text}
    files = (part.split("\n", 1) for part in text.split("### ")[1:])
    return {path.strip(): content for path, content in files}


def describe(schema: Schema) -> Iterator[str]:
    inherits = f" inherits {', '.join(schema.document.inherits)}" if schema.document.inherits else ""
    yield f"schema {schema.name}{inherits}"
    for field in schema.fields.values():
        settings = " ".join(_settings(field, skip={"name", "type", "indexing", "position", "in_document"}))
        yield f"  field {field.name} {field.type} {settings}".rstrip()
    for name, fieldset in schema.fieldsets.items():
        yield f"  fieldset {name}: {', '.join(fields)}"
    for name, summary in schema.summaries.items():
        yield f"  summary {name}: {', '.join(f'{to}={source}' for to, source in summary.fields.items())}".rstrip()
    for profile in schema.rank_profiles.values():
        yield from _describe_profile(profile)


def _describe_profile(profile: RankProfile) -> Iterator[str]:
    yield f"  rank-profile {profile.name}"
    for function in profile.functions.values():
        yield f"    function {function.name}({', '.join(function.parameters)}) = {_plain(function.expression)}"
    for setting in _settings(profile, skip={"name", "functions", "position"}):
        yield f"    {setting}"


def _settings(value: object, skip: set[str]) -> Iterator[str]:
    """name=value of the fields of a dataclass that differ from their defaults."""
    assert dataclasses.is_dataclass(value)
    for field in dataclasses.fields(value):
        if field.name in skip:
            continue
        actual = getattr(value, field.name)
        default = field.default_factory() if callable(field.default_factory) else field.default
        if dataclasses.is_dataclass(actual):
            yield f"{field.name}({' '.join(_settings(actual, skip=set()))})"
        elif actual != default:
            yield f"{field.name}={_plain(actual)}"


def _plain(value: object) -> str:
    if isinstance(value, frozenset):
        return str(sorted(value))
    return " ".join(value.split()) if isinstance(value, str) else str(dict(value) if hasattr(value, "items") else value)
