"""Whether a selection fits the document types that it is for.

What it may say depends on what it is for:

    condition   anything but imported fields: they are another document's, which may change at any time
    visiting    anything
    cluster     anything; that of a document names only its own type, that of all documents of a cluster names none
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from paperwasp.document.selection.analysis import nodes_of
from paperwasp.document.selection.paths import path_problem
from paperwasp.document.selection.tree import FieldValue, Node, Selection, TypeIs
from paperwasp.document.types import ArrayType, DataType, DocumentType, MapType, StructType, WeightedSetType
from paperwasp.errors import LanguageError
from paperwasp.text.parsing.tokens import did_you_mean, position_of

Imported = Mapping[str, Mapping[str, DataType]]
"""Document type → its imported fields by name, with their types."""

_NONE_IMPORTED: Final[Imported] = {}
_COMPLEX: Final = (ArrayType, MapType, StructType, WeightedSetType)


class Purpose(Enum):
    """The use of a selection, which decides what may be in it."""

    CONDITION = "condition"
    VISIT = "visiting"
    CLUSTER = "cluster"


def check_selection(
    selection: Selection,
    types: Mapping[str, DocumentType],
    imported: Imported = _NONE_IMPORTED,
    purpose: Purpose = Purpose.VISIT,
) -> None:
    """Raises LanguageError, with the place, where the selection names what does not exist or may not be named."""
    for node in nodes_of(selection):
        if isinstance(node, TypeIs | FieldValue) and (problem := _problem(node, types, imported, purpose)):
            raise LanguageError(problem, position_of(selection.text, node.start, selection.source))


def check_cluster_selection(selection: Selection, document_type: str = "") -> None:
    """That the selection of a document of a cluster names no other type, and that of all documents none at all.

    Errors: LanguageError with the place.
    """
    for node in nodes_of(selection):
        if not isinstance(node, TypeIs | FieldValue) or node.document_type == document_type:
            continue
        found = f"(found reference to type '{node.document_type}')"
        if document_type:
            problem = (
                f"Selection for document type '{document_type}' can not contain references to other document types"
            )
        else:
            problem = "Document type references are not allowed in global <documents> tag selection attribute"
        raise LanguageError(f"{problem} {found}", position_of(selection.text, node.start, selection.source))


def _problem(node: Node, types: Mapping[str, DocumentType], imported: Imported, purpose: Purpose) -> str:
    assert isinstance(node, TypeIs | FieldValue)
    document_type = types.get(node.document_type)
    if document_type is None:
        return f"Document type '{node.document_type}' not found{did_you_mean(node.document_type, types)}"
    if isinstance(node, TypeIs):
        return ""
    return _field_problem(node, document_type, imported.get(node.document_type, {}), purpose)


def _field_problem(
    node: FieldValue, document_type: DocumentType, imported: Mapping[str, DataType], purpose: Purpose
) -> str:
    type_ = document_type.fields.get(node.name)
    if type_ is not None:
        problem = path_problem(type_, node.steps)
        return f"'{node}': {problem}" if problem else ""
    if purpose is Purpose.CONDITION:
        found = f"Condition field '{node.name}' could not be found, or is an imported field"
        known = did_you_mean(node.name, document_type.fields)
        return f"{found}. Imported fields are not supported in conditional mutations{known}"
    if node.name not in imported:
        known = did_you_mean(node.name, [*document_type.fields, *imported])
        return f"No field '{node.name}' in document type '{document_type.name}'{known}"
    if node.steps or isinstance(imported[node.name], _COMPLEX):
        return f"'{node}': an imported field can be named here only where it is a single value, and without a path"
    return ""
