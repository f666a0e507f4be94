"""Golden scripts of the schema language: cases between lines of `====`, each `input`, a line `---`, `output`.

The lines before the first case name the script's authority. Input is one schema file, or several after lines
`### path`. PAPERWASP_REWRITE_SCRIPTS=1 writes what the code says into the script instead of comparing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import DataType
from paperwasp.errors import PaperwaspError
from paperwasp.schema import DocumentSummary, RankProfile, Schema, parse_schemas
from paperwasp.schema.summaries import PREFETCHED
from paperwasp.schema.syntax import dump, parse_profile_text, parse_schema_text
from tests.struct_fields import defaults_of

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
    told = (f"{finding.level.lower()}: {finding}" for finding in found.findings)
    return "".join(f"{line}\n" for line in [*lines, *told])


def files_of(text: str) -> dict[str, str]:
    if not text.startswith("### "):
        return {DEFAULT_PATH: text}
    files = (part.split("\n", 1) for part in text.split("### ")[1:])
    return {path.strip(): content for path, content in files}


def describe(schema: Schema) -> Iterator[str]:
    inherits = f" inherits {', '.join(schema.document.inherits)}" if schema.document.inherits else ""
    yield f"schema {schema.name}{inherits}"
    for name, type_ in schema.structs.items():
        fields = ", ".join(f"{field}: {inner}" for field, inner in getattr(type_, "fields", ()))
        yield f"  struct {name} {{ {fields} }}"
    for field in schema.fields.values():
        plain = {"script"} if field.script and field.script.is_plain else set()
        settings = _settings(field, skip={"name", "type", "indexing", *plain})
        yield " ".join([f"  field {field.name} {field.type}", *settings])
    for name, fieldset in schema.fieldsets.items():
        yield " ".join([f"  fieldset {name}: {', '.join(fieldset.fields)}", *_settings(fieldset, {"name", "fields"})])
    for kind, resources in (("constant", schema.constants), ("onnx-model", schema.onnx_models)):
        for name, resource in resources.items():
            yield " ".join([f"  {kind} {name}", *_settings(resource, skip={"name"})])
    for name, summary in schema.summaries.items():
        if name == PREFETCHED and summary.position is None:
            continue  # every schema with attributes has it: tests/search/show/test_document_summaries.py
        yield " ".join([f"  summary {name}:", *_settings(summary, skip={"name", "fields"}), _shown(summary)]).rstrip()
    for profile in schema.rank_profiles.values():
        yield from _describe_profile(profile)
    yield from (f"  {setting}" for setting in _settings(schema, skip=_SAID_ABOVE))


_SAID_ABOVE = {"name", "document", "structs", "fields", "fieldsets", "constants", "onnx_models"} | {
    "summaries", "rank_profiles", "source", "inherits"
}  # fmt: skip


def _shown(summary: DocumentSummary) -> str:
    return ", ".join(
        " ".join([f"{name}={'+'.join(field.sources)}", *_settings(field, skip={"name", "sources"})])
        for name, field in summary.fields.items()
    )


def _describe_profile(profile: RankProfile) -> Iterator[str]:
    yield f"  rank-profile {profile.name}"
    for function in profile.functions.values():
        inline = "inline " if function.inline else ""
        parameters = ", ".join(function.parameters)
        yield f"    {inline}function {function.name}({parameters}) = {_plain(function.expression)}"
    for setting in _settings(profile, skip={"name", "functions", "expression_positions"}):
        yield f"    {setting}"


def _settings(value: object, skip: Collection[str] = ()) -> Iterator[str]:
    """name=value of the fields of a record that differ from their defaults; places in files left out."""
    assert isinstance(value, Struct)
    unshown = getattr(value, "UNCOMPARED", ())
    for name, default in defaults_of(value).items():
        if name in skip or "position" in name or name in unshown:
            continue
        actual = getattr(value, name)
        if actual != default:
            yield f"{name}{_plain(actual)}" if _is_settings(actual) else f"{name}={_plain(actual)}"


def _is_settings(value: object) -> bool:
    return isinstance(value, Struct) and not isinstance(value, (DataType, TensorType))


def _plain(value: object) -> str:
    if _is_settings(value):
        return f"({' '.join(_settings(value))})"
    if isinstance(value, frozenset):
        return str(sorted(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_plain(item)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_plain, value)) + "]"
    return " ".join(value.split()) if isinstance(value, str) else str(value)
