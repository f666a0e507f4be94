"""Checks the references between the parts of a package: clusters to schemas, schemas to documents, both to files."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from paperwasp.application.findings import Findings
from paperwasp.application.services_model import Content, Services
from paperwasp.document.selection import Purpose, check_selection, parse_selection
from paperwasp.document.tensor.json_format import read_constant
from paperwasp.document.types import ReferenceType
from paperwasp.errors import InvalidInput, PaperwaspError, Position
from paperwasp.schema.model import Constant, OnnxModel, Schema
from paperwasp.text.parsing.nearest import did_you_mean


def check_references(
    services: Services,
    schemas: Mapping[str, Schema],
    broken: Collection[str],
    files: Mapping[str, bytes],
    findings: Findings,
) -> None:
    """Tells what is named and is not there, or is not what it must be.

    `broken` are the names of schemas that have problems already: to name them is not another one.
    """
    by_type = {schema.document.name: schema for schema in schemas.values()}
    for content in services.content_clusters:
        _check_types(content, by_type, broken, findings)
        _check_parents(content, by_type, findings)
        _check_selections(content, by_type, findings)
    _check_used(services.content_clusters, schemas, findings)
    for schema in schemas.values():
        _check_schema_files(schema, files, findings)
    _check_component_files(services, files, findings)


def _check_types(content: Content, by_type: Mapping[str, Schema], broken: Collection[str], findings: Findings) -> None:
    for document in content.documents:
        if document.type not in by_type and document.type not in broken:
            problem = f"no schema for document type '{document.type}' in content cluster '{content.id}'"
            findings.error(problem + did_you_mean(document.type, by_type), document.position)


def _check_selections(content: Content, by_type: Mapping[str, Schema], findings: Findings) -> None:
    """That the fields are there which the selections of documents name. Those of clusters name none."""
    for document in content.documents:
        schema = by_type.get(document.type)
        if schema is None or not document.selection:
            continue
        imported = {field.name: field.type for field in schema.fields.values() if field.imported is not None}
        types, imports = {document.type: schema.document}, {document.type: imported}
        with suppress(InvalidInput):  # reported already
            selection = parse_selection(document.selection)
            try:
                check_selection(selection, types, imports, Purpose.CLUSTER)
            except InvalidInput as error:
                findings.error(f"selection of '{document.type}': {error.message}", document.position)


def _check_parents(content: Content, by_type: Mapping[str, Schema], findings: Findings) -> None:
    """That all documents referred to are in the cluster and global: else a reference could lead to another node."""
    documents = {document.type: document for document in content.documents}
    for schema in (by_type[name] for name in documents if name in by_type):
        for field in schema.fields.values():
            if not isinstance(field.type, ReferenceType):
                continue
            problem = f"field '{field.name}' of '{schema.name}' refers to document type '{field.type.target}', which is"
            parent = documents.get(field.type.target)
            if parent is None:
                findings.error(f"{problem} not in content cluster '{content.id}'", field.position)
            elif not parent.is_global:
                findings.error(f"{problem} not global in content cluster '{content.id}'", field.position)


def _check_used(clusters: Sequence[Content], schemas: Mapping[str, Schema], findings: Findings) -> None:
    used = {name for cluster in clusters for name in cluster.document_types}
    for name in sorted(schemas):
        if schemas[name].document.name not in used:
            findings.info(f"Schema '{name}' is in no content cluster")


def _check_schema_files(schema: Schema, files: Mapping[str, bytes], findings: Findings) -> None:
    profiles = schema.rank_profiles.values()
    constants = [*schema.constants.values(), *(c for profile in profiles for c in profile.constants.values())]
    models = [*schema.onnx_models.values(), *(m for profile in profiles for m in profile.onnx_models.values())]
    for constant in _once(constants):
        _check_no_uri(f"constant '{constant.name}'", constant, findings)
        _check_constant(constant, files, findings)
    for model in _once(models):
        _check_no_uri(f"onnx-model '{model.name}'", model, findings)
        if model.file:
            _file(f"onnx-model '{model.name}'", model.file, model.position, files, findings)


_Named = TypeVar("_Named", Constant, OnnxModel)


def _once(found: Iterable[_Named]) -> list[_Named]:
    """Each of them once, though profiles repeat what they inherit."""
    return list({(item.name, item.position): item for item in found}.values())


def _check_no_uri(what: str, declared: Constant | OnnxModel, findings: Findings) -> None:
    """A service that fetched what a package names would go wherever a package sends it, and start only where it can."""
    if declared.uri:
        hint = "files are not fetched: put it into the application package, and name it by 'file'"
        findings.error(f"{what}: uri '{declared.uri}': {hint}", declared.position)


def _check_constant(constant: Constant, files: Mapping[str, bytes], findings: Findings) -> None:
    content = _file(f"constant '{constant.name}'", constant.file, constant.position, files, findings)
    if content is None:
        return
    try:
        read_constant(constant.file, content, constant.type)
    except PaperwaspError as error:
        findings.error(f"constant '{constant.name}': {error.message}", constant.position)


def _file(
    what: str, path: str, position: Position | None, files: Mapping[str, bytes], findings: Findings
) -> bytes | None:
    """The content of a file that the package must have; None, with an error, where it has not; None for no path."""
    if not path:
        return None
    content = files.get(posixpath.normpath(path))
    if content is None:
        findings.error(f"{what}: file '{path}' is not in the application package{did_you_mean(path, files)}", position)
    return content


def _check_component_files(services: Services, files: Mapping[str, bytes], findings: Findings) -> None:
    for container in services.containers:
        for component in container.components:
            for name, text in component.settings.items():
                if component.type and name.endswith("@path"):
                    _file(f"component '{component.id}'", text, component.position, files, findings)
