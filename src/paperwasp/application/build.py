"""From a package to the model of its application, checked.

`build_model` is the one way there. It collects everything that is wrong before it refuses, so that one deployment
tells all of it.

Vespa: https://docs.vespa.ai/en/reference/applications/application-packages.html
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final, TypeVar

from paperwasp import limits
from paperwasp.application.changes.overrides import ValidationOverrides, parse_overrides
from paperwasp.application.client_rules import check_clients, check_tls
from paperwasp.application.findings import Findings
from paperwasp.application.model import ApplicationModel, ContentCluster
from paperwasp.application.model_evaluation.models import check_models
from paperwasp.application.package import ApplicationPackage
from paperwasp.application.package_files import HOSTS_FILE, Hosts, check_files, is_schema_file, looked_at, parse_hosts
from paperwasp.application.preprocess import DeployProperties
from paperwasp.application.query_profiles import parse_query_profiles
from paperwasp.application.services import SERVICES_FILE, parse_services
from paperwasp.application.services_model import Container, Content, Mode, Services
from paperwasp.application.significance import check_significance
from paperwasp.base.file_contents import size_of
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.components.registry import check_components, refuse_python
from paperwasp.core.steps import step
from paperwasp.document.selection import Purpose, check_selection, parse_selection
from paperwasp.document.tensor.json_format import read_constant
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import ReferenceType
from paperwasp.errors import Finding, InvalidInput, InvalidPackage, LanguageError, PaperwaspError, Position
from paperwasp.query_languages.rules import NO_RULES, RuleBases, load_rules
from paperwasp.ranking import ProfileError
from paperwasp.schema import InvalidSchemas, parse_schemas
from paperwasp.schema.field_checks import STREAMED_ONLY, STREAMING_ONLY
from paperwasp.schema.files import PackageFiles
from paperwasp.schema.model import Constant, Input, OnnxModel, Schema
from paperwasp.schema.streaming import streamed_schema
from paperwasp.schema.teaser_settings import DEFAULT_TEASERS
from paperwasp.schema.text_profiles import with_snowball_english
from paperwasp.text.parsing.tokens import did_you_mean

SchemaCheck = Callable[[Schema, Mapping[str, bytes]], Iterable[Finding]]
"""Returns the findings on what a schema says beyond its own language, such as on its rank profiles, given the schema
and the files of its package. Errors: PaperwaspError for what is wrong."""

_SCHEMA_FOLDERS: Final = ("schemas", "searchdefinitions")
_TEXTS: Final = (".sd", ".profile", ".expression", ".sr", ".xml")
_WORD: Final = compile_later(r"\w+")
_QUOTED: Final = compile_later(r"'([^']*)'")
_OVERRIDES_FILE: Final = "validation-overrides.xml"


def build_model(
    package: ApplicationPackage,
    check_schema: SchemaCheck,
    now: date | None = None,
    properties: DeployProperties | None = None,
    *,
    allow_python: bool = False,
    authenticates: bool = False,
    query_expressions: bool = True,
    query_memory_bytes: int = limits.QUERY_MEMORY_BYTES,
) -> ApplicationModel:
    """The model of the application in the package, as a deployment with these properties sees it.

    `now` is the day for which validation overrides are checked; without it they are not. `allow_python`: components
    that are written in Python are loaded, which runs their code; otherwise a package that has some is refused.
    `authenticates`: clients of containers that do not say otherwise must tell who they are. `query_expressions`:
    queries may bring ranking expressions, where services.xml does not say otherwise. `query_memory_bytes`: what the
    tensors of a query may take, where it does not say.
    Errors: InvalidPackage with every problem found, each with file and place where there is one.
    """
    findings = Findings()
    files = looked_at(package.files)
    _check_texts(files)
    services = _services(files, properties or DeployProperties(), findings)
    at_hand = PackageFiles(files)
    if not allow_python and (refused := list(refuse_python(services.components))):
        findings.extend(refused)
        raise InvalidPackage(_join_errors(findings), findings.errors)
    step("components")
    if not findings.error_count:  # what is wrong with an element is said once
        findings.extend(check_components(services.components, at_hand))
    step("query profiles")
    profiles, profile_findings = parse_query_profiles(files)
    schemas, broken = _schemas(files, at_hand, check_schema, services, profiles.input_types, findings)
    step("rules and files")
    check_files(files, findings)
    findings.extend(profile_findings)
    rules = read_rules(files, findings)
    overrides = _overrides(files, now, findings)
    check_references(services, schemas, broken, files, findings)
    _check_containers(services.containers, files, findings, authenticates=authenticates)
    if findings.error_count:
        raise InvalidPackage(_join_errors(findings), findings.errors)
    containers = tuple(
        replace(container, query_memory_bytes=container.query_memory_bytes or query_memory_bytes)
        for container in services.containers
    )
    if not query_expressions:
        containers = tuple(replace(container, allows_expressions=False) for container in containers)
    return ApplicationModel(
        containers=containers,
        content_clusters=tuple(_cluster(content, schemas) for content in services.content_clusters),
        schemas=schemas,
        findings=findings.notes,
        checksum=package.checksum,
        query_profiles=profiles,
        rules=rules,
        overrides=overrides,
        files=files,
    )


def _check_containers(
    containers: Sequence[Container], files: Mapping[str, bytes], findings: Findings, *, authenticates: bool
) -> None:
    """The files of the package that they name."""
    step("models and certificates of containers")
    check_significance(containers, files, findings)
    check_models(containers, files, findings)
    check_clients(containers, files, findings, authenticates=authenticates)
    check_tls(containers, files, findings, authenticates=authenticates)


def _check_texts(files: Mapping[str, bytes]) -> None:
    """Errors: InvalidPackage where there is more to read than anybody writes."""
    step(SERVICES_FILE)
    size_bytes = sum(size_of(files, path) for path in files if path.endswith(_TEXTS))
    if size_bytes > limits.PACKAGE_TEXT_BYTES:
        raise InvalidPackage(
            f"Invalid application package: its schemas, expressions, rules and XML files have {size_bytes:,} bytes "
            f"together; at most {limits.PACKAGE_TEXT_BYTES:,} are read (PACKAGE_TEXT_BYTES)"
        )


def _services(files: Mapping[str, bytes], properties: DeployProperties, findings: Findings) -> Services:
    if SERVICES_FILE not in files:
        findings.error(f"{SERVICES_FILE} does not exist in application package. There are {len(files)} files in it")
        return Services()
    hosts = parse_hosts(files[HOSTS_FILE], findings) if HOSTS_FILE in files else Hosts()
    return parse_services(files, hosts, properties, findings)


def _schemas(
    files: Mapping[str, bytes],
    package: PackageFiles,
    check_schema: SchemaCheck,
    services: Services,
    input_types: Mapping[str, TensorType],
    findings: Findings,
) -> tuple[Mapping[str, Schema], Collection[str]]:
    """The schemas of the package by name, and the names of those that cannot be used."""
    texts, broken = _schema_texts(files, findings)
    streamed_types = _streamed_types(services)
    try:
        found = parse_schemas(texts)
        schemas = found.schemas
        findings.extend(_of_modes(found.findings, streamed_types, schemas))
    except InvalidSchemas as error:
        findings.extend(error.findings)
        schemas, broken = error.sound, {*broken, *error.broken}
        for schema in error.unsound.values():
            findings.extend(_errors_beside(schema, error.findings, files, check_schema))
    schemas = {
        name: replace(_with_inputs(schema, input_types), files=package, components=services.components)
        for name, schema in schemas.items()
    }
    for name, schema in schemas.items():
        if schema.document.name in streamed_types:
            schemas[name] = streamed_schema(schema)
    if _is_snowball_for_english(services, findings):
        schemas = {name: with_snowball_english(schema) for name, schema in schemas.items()}
    schemas = MappingProxyType(schemas)
    for schema in schemas.values():
        step(f"schema {schema.name}")
        try:
            findings.extend(check_schema(schema, files))
        except PaperwaspError as error:
            findings.extend(_findings_of(error))
    return schemas, broken


def _errors_beside(
    schema: Schema, known: Collection[Finding], files: Mapping[str, bytes], check_schema: SchemaCheck
) -> Iterator[Finding]:
    """Find the other problems of a schema of which parts could not be made: all that these parts cannot have caused."""
    try:
        found = list(check_schema(schema, files))
    except PaperwaspError as error:
        found = list(_findings_of(error))
    except Exception:  # it may lack what the check counts on, and is refused in any case
        return
    in_doubt = {word for each in known for word in _WORD.findall(_without_hint(each))} - {schema.name}
    places = {each.position for each in known}
    for each in found:
        named = {word for text in _QUOTED.findall(_without_hint(each)) for word in _WORD.findall(text)}
        if each.level == "ERROR" and each.position not in places and named.isdisjoint(in_doubt):
            yield each


def _without_hint(finding: Finding) -> str:
    """The message without what there is instead."""
    return finding.message.partition("; ")[0]


def _with_inputs(schema: Schema, types: Mapping[str, TensorType]) -> Schema:
    """The schema with those inputs in its rank profiles that only types of query profiles declare."""
    if not types:
        return schema
    inputs = {name: Input(type_) for name, type_ in types.items()}
    profiles = schema.rank_profiles.items()
    return replace(
        schema,
        rank_profiles={name: replace(profile, inputs=inputs | dict(profile.inputs)) for name, profile in profiles},
    )


def _streamed_types(services: Services) -> Collection[str]:
    """The document types that are only searched in mode streaming."""
    modes: dict[str, set[Mode]] = {}
    for cluster in services.content_clusters:
        for document in cluster.documents:
            modes.setdefault(document.type, set()).add(document.mode)
    return {name for name, found in modes.items() if "streaming" in found and "index" not in found}


def _is_snowball_for_english(services: Services, findings: Findings) -> bool:
    by_setting = {container.snowball_english: container for container in services.containers}
    if len(by_setting) == 2:
        message = "snowballStemmingForEnglish of one container holds for all: documents and queries are stemmed alike"
        findings.warning(message, by_setting[True].position)
    return True in by_setting


def _of_modes(
    findings: Iterable[Finding], streamed_types: Collection[str], schemas: Mapping[str, Schema]
) -> Iterator[Finding]:
    """The findings on schemas as the modes of their document types have it: without the warnings of what has an effect
    in streaming search only, and of what is an error in any other, where a type is so searched; with such errors where
    it is not."""
    for finding in findings:
        is_error = finding.message.endswith(STREAMED_ONLY)
        if finding.position is None or not (is_error or finding.message.endswith(STREAMING_ONLY)):
            yield finding
            continue
        schema = schemas.get(PurePosixPath(finding.position.source).stem)
        if schema is None or schema.document.name not in streamed_types:
            yield replace(finding, level="ERROR") if is_error else finding


def _schema_texts(files: Mapping[str, bytes], findings: Findings) -> tuple[Mapping[str, str], set[str]]:
    """The texts by path, and the names of files that are none."""
    texts: dict[str, str] = {}
    unreadable: set[str] = set()
    for folder in _SCHEMA_FOLDERS:
        for path, content in ApplicationPackage(files).under(folder, ".sd", ".profile", ".expression"):
            if path.endswith(".sd") and not is_schema_file(path):
                continue
            try:
                texts[path] = content.decode()
            except UnicodeDecodeError as error:
                findings.error(f"{path}: not UTF-8 at byte {error.start}")
                unreadable.add(PurePosixPath(path).stem)
    return texts, unreadable


def _findings_of(error: PaperwaspError) -> Sequence[Finding]:
    if isinstance(error, InvalidPackage) and error.findings:
        return error.findings
    if isinstance(error, ProfileError):
        return [finding for problem in error.problems for finding in _findings_of(problem)]
    if isinstance(error, LanguageError):
        return (Finding(error.bare_message, error.position, "ERROR"),)
    return [Finding(line, level="ERROR") for line in error.message.splitlines()]


def _overrides(files: Mapping[str, bytes], now: date | None, findings: Findings) -> ValidationOverrides:
    if _OVERRIDES_FILE not in files:
        return ValidationOverrides()
    overrides, found = parse_overrides(files[_OVERRIDES_FILE], _OVERRIDES_FILE, now)
    findings.extend(found)
    return overrides


def _cluster(content: Content, schemas: Mapping[str, Schema]) -> ContentCluster:
    """Join a cluster with its schemas, each with what the cluster says of it."""
    by_type = {schema.document.name: schema for schema in schemas.values()}
    found: dict[str, Schema] = {}
    for document in content.documents:
        schema = by_type[document.type]
        if document.teasers != DEFAULT_TEASERS:
            schema = replace(schema, teasers=document.teasers)
        found[document.type] = schema
    return ContentCluster(content, MappingProxyType(found))


def _join_errors(findings: Findings) -> str:
    """All errors as the message of one, in as many lines as can be read."""
    problems = [str(error) for error in findings.errors]
    if len(problems) == 1:
        return f"Invalid application package: {problems[0]}"
    count = findings.error_count
    lines = problems[: limits.PACKAGE_PROBLEMS]
    if count > len(lines):
        lines.append(f"and {count - len(lines)} more")
    return f"Invalid application package: {count} problems:\n" + "\n".join(lines)


# Checks the references between the parts of a package: clusters to schemas, schemas to documents, both to files.


def check_references(
    services: Services,
    schemas: Mapping[str, Schema],
    broken: Collection[str],
    files: Mapping[str, bytes],
    findings: Findings,
) -> None:
    """Tells what is named and is not there, or is not what it must be.

    `broken` are the names of schemas that have problems already: naming them is not a further one.
    """
    by_type = {schema.document.name: schema for schema in schemas.values()}
    for content in services.content_clusters:
        _check_types(content, by_type, broken, findings)
        _check_parents(content, by_type, findings)
        _check_selections(content, by_type, findings)
    used = {name for cluster in services.content_clusters for name in cluster.document_types}
    for name in sorted(schemas):
        if schemas[name].document.name not in used:
            findings.info(f"Schema '{name}' is in no content cluster")
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


# The rule bases of a package: the files in `rules`.
#
# Vespa: https://docs.vespa.ai/en/linguistics/query-rewriting.html#configuration


_FOLDER: Final = "rules"


def read_rules(files: Mapping[str, bytes], findings: Findings) -> RuleBases:
    """The rule bases; none where one of them is wrong. What is below a folder of `rules` is reported, and not read."""
    texts: dict[str, str] = {}
    for path, content in ApplicationPackage(files).under(_FOLDER, ".sr"):
        if path.count("/") > 1:
            findings.warning(f"{path}: not read: rule bases are files in '{_FOLDER}' itself")
        elif len(content) > limits.LANGUAGE_TEXT_BYTES:
            findings.error(f"{path}: has {len(content)} bytes; at most {limits.LANGUAGE_TEXT_BYTES}")
        else:
            try:
                texts[path] = content.decode()
            except UnicodeDecodeError as error:
                findings.error(f"{path}: not UTF-8 at byte {error.start}")
    if not texts:
        return NO_RULES
    bases, found = load_rules(texts)
    findings.extend(found)
    if bases.default is None and bases.by_name and not any(one.level == "ERROR" for one in found):
        hint = f"no rule base in '{_FOLDER}' is marked @default: only queries with rules.rulebase are evaluated by one"
        findings.add(Finding(hint, level="INFO"))
    return bases
