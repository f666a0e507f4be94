"""The connections of schemas beside inheritance: references, and the fields imported through them.

Vespa: https://docs.vespa.ai/en/schemas/parent-child.html
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct, field

from paperwasp.base.records import replace
from paperwasp.document.types import PREDICATE
from paperwasp.schema.data_types import holds_struct, is_position, target_of
from paperwasp.schema.model import Field, ImportedField
from paperwasp.schema.tree import Problems, SchemaNode, nearest


class Connected(Struct):
    """The part of a schema that its connections need."""

    name: str
    fields: dict[str, Field]
    unusable: set[str]
    imports: tuple[SchemaNode, ...]
    inherited_documents: tuple[str, ...]
    inherited_schemas: tuple[str, ...]
    imported: dict[str, Field] = field(default_factory=dict)
    """Filled by `connect`."""


def connect(schemas: Mapping[str, Connected], broken: set[str], problems: Problems) -> None:
    """Resolves the imports of all schemas, and checks their references. `broken` are schemas that do not parse."""
    _check_references(schemas, broken, problems)
    done: dict[str, bool] = {}
    for name in schemas:
        _import_all(name, schemas, broken, done, problems)


def _check_references(schemas: Mapping[str, Connected], broken: set[str], problems: Problems) -> None:
    for schema in schemas.values():
        for each in schema.fields.values():
            target = target_of(each.type)
            if target and target not in schemas and target not in broken:
                message = f"field {each.name} refers to document type {target!r}, which does not exist"
                problems.error(message + nearest(target, schemas), each.position)
    state: dict[str, int] = {}
    for name in schemas:
        _check_cycle(name, schemas, state, problems)


def _check_cycle(start: str, schemas: Mapping[str, Connected], state: dict[str, int], problems: Problems) -> None:
    """Reports references that lead back to their document type, by a walk without recursion."""
    path: list[tuple[str, list[Field]]] = []
    if start not in state:
        state[start] = 1
        path.append((start, _references(schemas[start])))
    while path:
        name, references = path[-1]
        if not references:
            state[name] = 2
            path.pop()
            continue
        reference = references.pop()
        target = target_of(reference.type)
        if target not in schemas:
            continue
        if state.get(target) == 1:
            names = [each for each, _ in path]
            cycle = " refers to ".join([*names[names.index(target) :], target])
            problems.error(f"a cycle of document types: {cycle}", reference.position)
        elif target not in state:
            state[target] = 1
            path.append((target, _references(schemas[target])))


def _references(schema: Connected) -> list[Field]:
    return [each for each in schema.fields.values() if target_of(each.type)]


def _import_all(
    name: str, schemas: Mapping[str, Connected], broken: set[str], done: dict[str, bool], problems: Problems
) -> None:
    """Resolves the imports of a schema after those that it needs: of its parents and of what it refers to."""
    stack = [name]
    while stack:
        current = stack[-1]
        if done.get(current):
            stack.pop()
            continue
        schema = schemas[current]
        needed = [n for n in (*schema.inherited_schemas, *_targets(schema)) if n in schemas and n not in done]
        if needed and current not in done:
            done[current] = False
            stack += needed
            continue
        done[current] = True
        stack.pop()
        for parent in schema.inherited_schemas:
            if parent in schemas:
                schema.imported |= schemas[parent].imported
        for node in schema.imports:
            _import(node, schema, schemas, broken, problems)


def _targets(schema: Connected) -> list[str]:
    return [target_of(each.type) for each in _references(schema)]


def _import(
    node: SchemaNode, schema: Connected, schemas: Mapping[str, Connected], broken: set[str], problems: Problems
) -> None:
    name = node.arguments[0]
    reference_name, _, target_name = node.name.partition(".")
    where = f"import field {name}"
    if not target_name or "." in target_name:
        message = f"{where}: {node.name!r} must be a reference field and a field of what it refers to"
        problems.error(message, node.position)
        return
    if name in schema.fields or name in schema.imported:
        problems.error(f"{where}: there is a field of that name already", node.position)
        return
    reference = schema.fields.get(reference_name)
    if reference is None or not target_of(reference.type):
        if reference_name not in schema.unusable:
            references = [each.name for each in _references(schema)]
            message = f"{where}: there is no reference field {reference_name!r}{nearest(reference_name, references)}"
            problems.error(message, node.position)
        schema.unusable.add(name)
        return
    document = target_of(reference.type)
    target_schema = schemas.get(document)
    target = {**target_schema.fields, **target_schema.imported}.get(target_name) if target_schema else None
    if target is None:
        schema.unusable.add(name)
        if target_schema is not None and target_name not in target_schema.unusable:
            message = f"{where}: document type {document} has no field {target_name!r}"
            problems.error(message + nearest(target_name, target_schema.fields), node.position)
        return
    if why := _not_importable(target):
        problems.error(f"{where}: field {target_name} of {document} {why}", node.position)
    imported = ImportedField(name, reference_name, target_name, document, node.position)
    schema.imported[name] = _as_imported(target, imported)


def _not_importable(target: Field) -> str:
    """Why a field cannot be imported; empty if it can."""
    if target.type == PREDICATE:
        return "is a predicate, which cannot be imported"
    if holds_struct(target.type) and not is_position(target.type):
        has_attribute = any(sub.attribute for sub in target.sub_fields.values())
        return "" if has_attribute else "has no part that is an attribute, so it cannot be imported"
    if target.attribute is None:
        return "is no attribute, and only attributes can be imported"
    return "has an index, so it cannot be imported" if target.index else ""


def _as_imported(target: Field, imported: ImportedField) -> Field:
    """The field as the importing schema has it: the target's type and attribute, nothing that indexing makes."""
    return replace(
        target,
        name=imported.name,
        imported=imported,
        in_document=False,
        summary=False,
        summaries=(),
        bolding=False,
        script=None,
        indexing="",
        aliases=MappingProxyType({}),
        query_commands=(),
        position=imported.position,
    )
