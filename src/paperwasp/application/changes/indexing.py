"""When documents must be indexed again: what is made of a field's value before it is stored differs.

Where the results go does not matter, as in Vespa: an output more or less changes no value. What does is the statement
without its outputs, and what indexing adds to it: `{ input title | tokenize normalize stem:"BEST" | index title; }`.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#modifying-schemas
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass
from paperwasp.document.types import PREDICATE, STRING, ArrayType, DataType, WeightedSetType
from paperwasp.schema.model import Field, IndexSettings, Schema

_OUTPUTS: Final = ("index", "attribute", "summary")
_OUTPUT: Final = compile_later(
    r""""[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*'"""
    r"""| ?\|\s*(?:index|attribute|summary)\b(?:\s+[A-Za-z_][\w.-]*)?""",
    re.DOTALL | re.ASCII,
)
"""A string, which stays, or an output of a statement."""
_TOLD: Final = {"transform": "summary field '{}' transform"}
_MODES: Final = ("text", "word", "exact", "gram")
_LEVELS: Final = {"word": "LOWERCASE", "exact": "LOWERCASE", "gram": "CODEPOINT"}
"""Match mode → what is made of letters, where the mode and not `normalizing` says it."""


@dataclass(frozen=True, slots=True)
class IndexingChange:
    """A field whose values must be made again. `validation_id` None: it has none yet, so nothing is lost."""

    message: str
    validation_id: str | None = "indexing-change"


@dataclass(frozen=True, slots=True)
class _Indexing:
    """How the values of a field are made, and how that is described to people."""

    name: str
    values: str
    """The statement without its outputs, and what indexing adds."""
    outputs: str
    is_indexed: bool
    matching: str
    stemming: str
    normalizing: str
    transform: str
    """The transform of its summary: `none`, `dynamicteaser` or `bold`."""

    def __str__(self) -> str:
        return f"{{ {self.values}{self.outputs}; }}"


def indexing_changes(active: Schema, new: Schema) -> Iterator[IndexingChange]:
    """The fields of the new schema whose values are not those that the old one made."""
    for name, field in new.fields.items():
        if field.imported is not None:
            continue
        before = active.fields.get(name)
        if before is None or before.imported is not None:
            if not field.in_document:
                message = f"Non-document field '{name}' added; this may be populated by reindexing"
                yield IndexingChange(message, None)
        elif changes := [*_changes(_indexing(active, before), _indexing(new, field)), *_types(before, field)]:
            yield IndexingChange(f"Field '{name}' changed: {', '.join(changes)}")


def _changes(before: _Indexing, after: _Indexing) -> Iterator[str]:
    if before.values == after.values:
        return
    if before.is_indexed != after.is_indexed:
        yield f"{'add' if after.is_indexed else 'remove'} index aspect"
    for what in ("matching", "stemming", "normalizing", "transform"):
        old, new = getattr(before, what), getattr(after, what)
        if old != new:
            yield f"{_TOLD.get(what, what).format(after.name)}: '{old}' -> '{new}'"
    yield f"indexing script: '{before}' -> '{after}'"


def _types(before: Field, after: Field) -> Iterator[str]:
    """A field outside the document has values that indexing makes, which can be made again for another type."""
    if before.type != after.type and not (before.in_document and after.in_document):
        yield f"data type: '{before.type}' -> '{after.type}'"


def _indexing(schema: Schema, field: Field) -> _Indexing:
    transform = _transform(schema, field)
    settings = field.index or IndexSettings()
    mode = _mode(field)
    matched_whole = mode != "text"
    return _Indexing(
        name=field.name,
        values=" | ".join(filter(None, (_values(field), _step(field, mode, settings, transform)))),
        outputs="".join(f" | {output} {field.name}" for output in _OUTPUTS if _has(field, output)),
        is_indexed=field.index is not None,
        matching=f"gram (size {field.match_settings.gram_size})" if mode == "gram" else mode,
        stemming="none" if matched_whole else settings.stemming,
        normalizing=_LEVELS.get(mode, "ACCENT" if settings.normalizing else "NONE"),
        transform=transform,
    )


def _mode(field: Field) -> str:
    """Texts match by their words, but what is an attribute alone as a whole."""
    if field.match in _MODES:
        return str(field.match)
    is_whole = _is_text(field.type) and field.attribute is not None and field.index is None
    return "word" if is_whole else "text"


def _values(field: Field) -> str:
    """The statement, without where its results go."""
    script = field.script
    if script is None or script.is_plain:
        text = f"input {field.name}"
    else:
        text = _OUTPUT.sub(lambda found: found[0] if found[0][0] in "\"'" else "", script.text)
    if field.type == PREDICATE and field.index is not None:
        index = field.index
        bounds = {"arity": index.arity, "lower_bound": index.lower_bound, "upper_bound": index.upper_bound}
        text = "".join(f"{value} | set_var {name}; " for name, value in bounds.items() if value is not None) + text
    return text


def _step(field: Field, mode: str, settings: IndexSettings, transform: str) -> str:
    """The step that indexing adds for texts that are indexed, or that a summary shows in parts; empty: none."""
    is_marked = transform != "none" and mode == "text"
    if not _is_text(field.type) or (field.index is None and not is_marked):
        return ""
    if mode == "gram":
        step = f"ngram {field.match_settings.gram_size}"
    else:
        step = "exact" if mode != "text" else _tokenize(settings)
    step += _limits(field)
    return f"for_each {{ {step} }}" if isinstance(field.type, ArrayType | WeightedSetType) else step


def _tokenize(settings: IndexSettings) -> str:
    words = ["tokenize"]
    if settings.normalizing:
        words.append("normalize")
    if settings.stemming != "none":
        words.append(f'stem:"{settings.stemming.upper()}"')
    return " ".join(words)


def _limits(field: Field) -> str:
    """The settings of matching that tokens depend on, beside the mode."""
    settings = field.match_settings
    values = {
        "max-length": settings.max_length,
        "max-occurrences": settings.max_occurrences,
        "max-token-length": settings.max_token_length,
        "linguistics-profile": field.linguistics.index_profile if field.linguistics else None,
    }
    text = "".join(f" {name}:{value}" for name, value in values.items() if value)
    return text + (" keep-case" if field.cased else "")


def _has(field: Field, output: str) -> bool:
    return bool(getattr(field, output))


def _transform(schema: Schema, field: Field) -> str:
    shown = schema.summaries["default"].fields.get(field.name)
    if shown is not None and shown.dynamic:
        return "dynamicteaser"
    return "bold" if field.bolding or (shown is not None and shown.bolding) else "none"


def _is_text(type_: DataType) -> bool:
    inner = type_.inner[0] if isinstance(type_, ArrayType | WeightedSetType) else type_
    return inner == STRING
