"""From the files of a package to its schemas.

1. Every file is parsed, and schemas are ordered by inheritance.
2. Each schema declares its types and fields, after those that it inherits (`declaration`).
3. References and imports connect the schemas (`declaration`).
4. Each gets its scripts, fieldsets, summaries and rank profiles.

Every file is looked at and all problems are raised together. A schema that inherits one whose file does not parse is
left out, so that one mistake is not reported as many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final, TypeVar

from msgspec import Struct

from paperwasp import limits
from paperwasp.core.steps import step
from paperwasp.document.types import ReferenceType
from paperwasp.errors import Finding, InvalidInput, LanguageError
from paperwasp.schema.connections import connect
from paperwasp.schema.declaration import Declared, Source, declare
from paperwasp.schema.fieldsets import resolve_fieldsets
from paperwasp.schema.indexing import check_script
from paperwasp.schema.model import DocumentSummary, Field, FieldSet, Schema
from paperwasp.schema.pending import pending
from paperwasp.schema.rank_profiles import (
    BUILT_IN,
    FieldRanking,
    ProfileScope,
    all_profiles,
    check_profile,
    rank_profile,
)
from paperwasp.schema.rank_settings import RankSettings, Surroundings, onnx_model, schema_constant
from paperwasp.schema.summaries import resolve_summaries
from paperwasp.schema.syntax import SyntaxMistakes, parse_profile_text, parse_schema_text
from paperwasp.schema.tree import InvalidSchemas, Problems, SchemaNode, boolean, nearest

SCHEMA_SUFFIX: Final = ".sd"
PROFILE_SUFFIX: Final = ".profile"
_RESERVED_DOCUMENTS: Final = frozenset({"position"})
_WORDS_OF_SELECTIONS: Final = frozenset({"and", "false", "id", "not", "null", "or", "true"})
"""In any case: ReservedDocumentTypeNameValidator.java in Vespa."""
"""Types that every document has (ReservedDocumentNames of Vespa)."""


class SchemaSet(Struct, frozen=True):
    """The schemas of a package by name, in the order of its files' paths."""

    schemas: Mapping[str, Schema]
    findings: tuple[Finding, ...] = ()
    """Notes, with places, on what has no effect, works differently than written, or is not executed yet."""


def parse_schemas(files: Mapping[str, str]) -> SchemaSet:
    """Parses and resolves the schemas in `files`, a mapping of package path to text.

    Looked at are `*.sd`, `*.profile` below the directory of its schema, and the `*.expression` that these name.
    Raises InvalidSchemas with all problems of all files.
    """
    problems = Problems()
    package = _Package(files, problems)
    package.read()
    schemas = package.resolve()
    try:
        problems.check()
    except InvalidSchemas as error:
        error.sound = MappingProxyType(package.sound(schemas, error))
        unsound = {name: each for name, each in schemas.items() if name not in error.sound}
        error.unsound = MappingProxyType(unsound)
        error.broken = (package.broken | package.sources.keys()) - error.sound.keys()
        raise
    for schema in schemas.values():
        problems.add(pending(schema))
    return SchemaSet(MappingProxyType(schemas), problems.findings)


class _Package:
    """The schema files of one package on their way to schemas."""

    def __init__(self, files: Mapping[str, str], problems: Problems) -> None:
        self.files = files
        self.problems = problems
        self.sources: dict[str, Source] = {}
        self.broken: set[str] = set()
        """Names of schemas whose file does not parse."""
        self.declared: dict[str, Declared | None] = {}
        """In the order of inheritance; None where something that the schema inherits is broken."""
        self.path: list[str] = []
        self.parts = 0

    # Reading

    def read(self) -> None:
        for path in sorted(self.files):
            if path.endswith(SCHEMA_SUFFIX):
                self.read_schema(path)
        for path in sorted(self.files):
            if path.endswith(PROFILE_SUFFIX):
                self.read_profile(path)

    def parse(self, path: str, parser: Callable[[str, str], SchemaNode]) -> SchemaNode | None:
        try:
            return parser(self.files[path], path)
        except SyntaxMistakes as error:
            for mistake in error.mistakes:
                self.problems.error(mistake.bare_message, mistake.position)
        except LanguageError as error:
            self.problems.error(error.bare_message, error.position)
        except InvalidInput as error:
            self.problems.error(error.message, None)
        return None

    def read_schema(self, path: str) -> None:
        step(path)
        stem = PurePosixPath(path).stem
        root = self.parse(path, parse_schema_text)
        document = self.document_of(root) if root else None
        if root is None or document is None:
            self.broken.add(stem)
            return
        if root.name != stem:
            message = f"{root.describe()} must be in a file named {root.name}{SCHEMA_SUFFIX}"
            self.problems.error(message, root.position)
        if root.name in _RESERVED_DOCUMENTS or root.name.lower() in _WORDS_OF_SELECTIONS:
            self.problems.error(f"Document name {root.name!r} is reserved", root.position)
        if root.name in self.sources:
            self.problems.error(f"{root.describe()} is defined twice", root.position)
        self.sources[root.name] = Source(path, root, document, list(root.all("rank-profile")))

    def document_of(self, root: SchemaNode) -> SchemaNode | None:
        """The one document of a schema; None after telling `problems` that there is not one."""
        if root.keyword == "document":
            return root
        documents = list(root.all("document"))
        if len(documents) != 1:
            self.problems.error(f"{root.describe()} must have one document, and has {len(documents)}", root.position)
            return None
        if documents[0].name not in ("", root.name):
            message = f"{documents[0].describe()} must have the name of its schema, {root.name}"
            self.problems.error(message, documents[0].position)
        return documents[0]

    def read_profile(self, path: str) -> None:
        step(path)
        parts = PurePosixPath(path).parts
        schema = parts[1] if len(parts) > 2 else ""
        node = self.parse(path, parse_profile_text)
        if node is None:
            self.broken.add(schema)
        elif schema in self.sources:
            self.sources[schema].profiles.append(node)
            if node.name != PurePosixPath(path).stem:
                message = f"{node.describe()} must be in a file named {node.name}{PROFILE_SUFFIX}"
                self.problems.error(message, node.position)
        elif schema not in self.broken:
            hint = nearest(schema, self.sources)
            message = f"{node.describe()} is not used: it belongs to schema {schema!r}, which does not exist{hint}"
            self.problems.warn(message, node.position)

    # Resolving

    def resolve(self) -> dict[str, Schema]:
        for name in self.sources:
            step(f"the fields of schema {name}")
            self.declare(name)
        usable = {name: declared for name, declared in self.declared.items() if declared}
        connect(
            {name: declared.connected for name, declared in usable.items()},
            self.broken | (self.sources.keys() - usable.keys()),
            self.problems,
        )
        completed: dict[str, Completed] = {}
        for name, declared in usable.items():
            step(f"rank profiles and summaries of schema {name}")
            completed[name] = complete(declared, completed, self.files, self.problems)
        return {name: completed[name].schema for name in self.sources if name in completed}

    def sound(self, schemas: Mapping[str, Schema], invalid: InvalidSchemas) -> dict[str, Schema]:
        """The schemas without a problem in their own files, or in those of schemas that they are made of."""
        places = {finding.position.source if finding.position else "" for finding in invalid.findings}
        if "" in places:
            return {}
        with_problems = {path for path in self.files if path in places}
        sound = {name for name in schemas if with_problems.isdisjoint(self.files_of(name)) and name not in self.broken}
        while unsound := {name for name in sound if not self.made_of(schemas[name]) <= sound}:
            sound -= unsound
        return {name: schema for name, schema in schemas.items() if name in sound}

    def files_of(self, name: str) -> set[str]:
        path = self.sources[name].path
        below = f"{path.removesuffix(SCHEMA_SUFFIX)}/"
        return {path} | {other for other in self.files if other.startswith(below)}

    def made_of(self, schema: Schema) -> set[str]:
        """The names of schemas that it inherits or refers to."""
        source = self.sources[schema.name]
        types = (field.type for field in schema.fields.values())
        referred = {type_.target for type_ in types if isinstance(type_, ReferenceType)}
        return {*source.inherited_documents, *source.inherited_schemas, *referred}

    def declare(self, name: str) -> Declared | None:
        """The types and fields of schema `name`; None where something that it inherits is broken."""
        if name not in self.declared:
            source = self.sources[name]
            self.path.append(name)
            parents = {parent: self.parent(parent, source) for parent in self.parent_names(source)}
            self.path.pop()
            whole = {parent: declared for parent, declared in parents.items() if declared}
            usable = len(whole) == len(parents) and name not in self.broken
            self.declared[name] = declare(source, whole, self.problems) if usable and self.has_room(source) else None
            declared = self.declared[name]
            self.parts += declared.scope.parts + len(declared.fields) if declared else 0
        return self.declared[name]

    def has_room(self, source: Source) -> bool:
        """Return whether the schemas so far declare little enough, what they inherit counted in each."""
        if self.parts <= limits.SCHEMA_PARTS:
            return True
        message = f"the schemas have more than {limits.SCHEMA_PARTS} fields and types within them together"
        self.problems.error(message, source.root.position)
        return False

    def parent_names(self, source: Source) -> tuple[str, ...]:
        if len(source.inherited_schemas) > 1:
            message = f"schema {source.name} can inherit one schema, and inherits {len(source.inherited_schemas)}"
            self.problems.error(message, source.root.position)
        for name in source.inherited_schemas:
            if name not in source.inherited_documents:
                message = f"schema {source.name} inherits {name}, so its document must inherit {name} too"
                self.problems.error(message, source.document.position)
        return tuple(dict.fromkeys([*source.inherited_documents, *source.inherited_schemas]))

    def parent(self, name: str, source: Source) -> Declared | None:
        position = source.document.position
        if name in self.path:
            cycle = " inherits ".join([*self.path[self.path.index(name) :], name])
            self.problems.error(f"a cycle of schemas: {cycle}", position)
        elif len(self.path) >= limits.INHERITANCE_DEPTH:
            self.problems.error(f"schemas inherit deeper than {limits.INHERITANCE_DEPTH}", position)
        elif name in self.sources:
            return self.declare(name)
        elif name not in self.broken:
            hint = nearest(name, self.sources.keys() - {source.name})
            self.problems.error(f"{source.name} inherits {name!r}, which does not exist{hint}", position)
        return None


# Completes a schema once all fields of all schemas are known: the schema as the model has it.


_T = TypeVar("_T")


class Completed(Struct):
    """A schema, and what those that inherit it need beside it."""

    schema: Schema
    profiles: dict[str, RankSettings]
    """The effective rank profiles that are the schema's own or of schemas it inherits."""
    reachable: dict[str, RankSettings]
    """`profiles`, and those of the schemas of inherited documents: what a profile may inherit."""


def complete(
    declared: Declared,
    done: Mapping[str, Completed],
    files: Mapping[str, str],
    problems: Problems,
) -> Completed:
    """The schema; those that it inherits are in `done`."""
    return _Completion(declared, done, files, problems).run()


class _Completion:
    """One schema on its way to being complete."""

    def __init__(
        self,
        declared: Declared,
        done: Mapping[str, Completed],
        files: Mapping[str, str],
        problems: Problems,
    ) -> None:
        self.declared = declared
        self.source = declared.source
        self.inherited = [done[name] for name in self.source.inherited_schemas]
        self.inherited_documents = [done[name] for name in self.source.inherited_documents]
        self.files = files
        self.problems = problems
        self.fields: Mapping[str, Field] = MappingProxyType({**declared.fields, **declared.connected.imported})
        self.ranking = FieldRanking.of(self.fields)

    def run(self) -> Completed:
        self.check_scripts()
        profiles, reachable = self.rank_settings()
        schema = self.schema(profiles)
        for profile in schema.rank_profiles.values():
            check_profile(profile, self.fields, self.declared.unusable, self.problems)
        return Completed(schema, profiles, reachable)

    def schema(self, profiles: Mapping[str, RankSettings]) -> Schema:
        constants = self.gather("constant", "constants", schema_constant)
        models = self.gather("onnx-model", "onnx_models", onnx_model)
        effective = {**BUILT_IN, **profiles}
        return Schema(
            name=self.source.name,
            document=self.declared.document_type(),
            fields=self.fields,
            fieldsets=MappingProxyType(self.fieldsets()),
            rank_profiles=MappingProxyType(
                {name: rank_profile(each, self.ranking, constants, models) for name, each in effective.items()}
            ),
            summaries=MappingProxyType(self.summaries()),
            source=self.source.path,
            structs=MappingProxyType(self.declared.scope.structs),
            constants=constants,
            onnx_models=models,
            raw_as_base64=self.raw_as_base64(),
            documentid_from_disk=all(node.text != "attribute" for node in self.source.elements("documentid")),
            inherits=self.source.inherited_schemas,
            position=self.source.root.position,
        )

    def check_scripts(self) -> None:
        for draft in self.declared.drafts:
            for each in (draft, *draft.sub_drafts.values()):
                if each.script and not each.script.is_plain:
                    check_script(each.script, self.fields, self.problems)

    def raw_as_base64(self) -> bool:
        flags = [not node.values or boolean(node) for node in self.source.elements("raw-as-base64-in-summary")]
        inherited = all(each.schema.raw_as_base64 for each in self.inherited)
        return flags[-1] if flags else inherited

    def gather(self, keyword: str, name: str, resolve: Callable[[SchemaNode, Problems], _T | None]) -> Mapping[str, _T]:
        """Gathers the schema's elements of that keyword by name, with those of inherited schemas."""
        own: dict[str, _T] = {}
        for node in self.source.elements(keyword):
            if node.name in own:
                self.problems.error(f"{node.describe()} is defined twice", node.position)
            resolved = resolve(node, self.problems)
            if resolved is not None:
                own[node.name] = resolved
        inherited = {key: value for each in self.inherited for key, value in getattr(each.schema, name).items()}
        return MappingProxyType({**inherited, **own})

    def fieldsets(self) -> dict[str, FieldSet]:
        inherited = {name: fieldset for each in self.inherited for name, fieldset in each.schema.fieldsets.items()}
        own = resolve_fieldsets(self.source.elements("fieldset"), self.fields, self.declared.unusable, self.problems)
        return {**inherited, **own}

    def rank_settings(self) -> tuple[dict[str, RankSettings], dict[str, RankSettings]]:
        """The effective profiles of the schema, and those together with what inheriting documents can reach."""
        parents = (*self.inherited_documents, *self.inherited)
        reachable = {name: settings for parent in parents for name, settings in parent.reachable.items()}
        inherited = {name: settings for parent in self.inherited for name, settings in parent.profiles.items()}
        declared = all_profiles(self.source.profiles, self.problems)
        around = Surroundings(
            fields=self.fields,
            unusable=self.declared.unusable,
            ranking_fields=len(self.ranking),
            files=self.files,
            directory=self.source.path[: self.source.path.rfind("/") + 1],
            problems=self.problems,
        )
        own = ProfileScope(declared, {**reachable, **inherited}).resolve(around)
        return {**inherited, **own}, {**reachable, **inherited, **own}

    def summaries(self) -> dict[str, DocumentSummary]:
        declared: dict[str, SchemaNode] = {}
        for node in self.source.elements("document-summary"):
            if node.name in declared:
                self.problems.error(f"document-summary {node.name} is defined twice", node.position)
            declared.setdefault(node.name, node)
        inherited = {name: each for parent in self.inherited for name, each in parent.schema.summaries.items()}
        return resolve_summaries(declared, inherited, self.fields, self.declared.unusable, self.problems)
