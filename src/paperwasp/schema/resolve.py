"""From the files of a package to its schemas: parse each, order them by inheritance, resolve one after the other.

Every file is looked at and all problems are raised together. A schema that inherits one whose file does not parse is
left out, so that one mistake is not reported as many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final

from paperwasp import limits
from paperwasp.document.types import DocumentType
from paperwasp.errors import Finding, InvalidInput, LanguageError, Position
from paperwasp.schema.fields import resolve_field, stemming_of
from paperwasp.schema.model import DocumentSummary, Field, FieldSet, Schema, Stemming
from paperwasp.schema.problems import Problems
from paperwasp.schema.rank_profiles import BUILT_IN, ProfileScope, all_profiles, rank_profile
from paperwasp.schema.rank_settings import RankSettings, Surroundings
from paperwasp.schema.summaries import resolve_summaries
from paperwasp.schema.syntax import parse_profile_text, parse_schema_text
from paperwasp.schema.tree import Node

SCHEMA_SUFFIX: Final = ".sd"
PROFILE_SUFFIX: Final = ".profile"
_ROOT_DOCUMENT: Final = "document"
"""The type that every document inherits anyway."""


@dataclass(frozen=True, slots=True)
class SchemaSet:
    """The schemas of a package by name, in the order of its files' paths."""

    schemas: Mapping[str, Schema]
    findings: tuple[Finding, ...] = ()
    """What is accepted without effect, or differently than written, or not executed yet, each with its place."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The findings as lines."""
        return tuple(map(str, self.findings))


def parse_schemas(files: Mapping[str, str]) -> SchemaSet:
    """Parses and resolves the schemas in `files`, a mapping of package path to text.

    Looked at are `*.sd`, `*.profile` below the directory of its schema, and the `*.expression` that these name.
    Raises InvalidSchemas with all problems of all files.
    """
    problems = Problems()
    package = _Package(files, problems)
    package.read()
    schemas = package.resolve()
    problems.check()
    return SchemaSet(MappingProxyType(schemas), problems.findings)


@dataclass(slots=True)
class _Source:
    """A schema before it is resolved."""

    path: str
    root: Node
    document: Node
    profiles: list[Node]

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def inherited_schemas(self) -> tuple[str, ...]:
        return self.root.inherits if self.root.keyword == "schema" else ()

    @property
    def elements(self) -> tuple[Node, ...]:
        return self.root.children if self.root.keyword == "schema" else ()

    @property
    def inherited_documents(self) -> tuple[str, ...]:
        return tuple(name for name in self.document.inherits if name != _ROOT_DOCUMENT)


@dataclass(slots=True)
class _Resolved:
    """A schema, and what those that inherit it need beside it."""

    schema: Schema
    profiles: dict[str, RankSettings] = field(default_factory=dict)
    """The effective rank profiles that are the schema's own or of schemas it inherits."""
    reachable: dict[str, RankSettings] = field(default_factory=dict)
    """Those, and the ones of the schemas of inherited documents: what a profile may inherit."""


class _Package:
    """The schema files of one package on their way to schemas."""

    def __init__(self, files: Mapping[str, str], problems: Problems) -> None:
        self.files = files
        self.problems = problems
        self.sources: dict[str, _Source] = {}
        self.broken: set[str] = set()
        """Names of schemas whose file does not parse."""
        self.resolved: dict[str, _Resolved | None] = {}
        self.path: list[str] = []

    # Reading

    def read(self) -> None:
        for path in sorted(self.files):
            if path.endswith(SCHEMA_SUFFIX):
                self.read_schema(path)
        for path in sorted(self.files):
            if path.endswith(PROFILE_SUFFIX):
                self.read_profile(path)

    def parse(self, path: str, parser: Callable[[str, str], Node]) -> Node | None:
        try:
            return parser(self.files[path], path)
        except LanguageError as error:
            self.problems.error(error.bare_message, error.position)
        except InvalidInput as error:
            self.problems.error(error.message, None)
        return None

    def read_schema(self, path: str) -> None:
        stem = PurePosixPath(path).stem
        root = self.parse(path, parse_schema_text)
        document = self.document_of(root) if root else None
        if root is None or document is None:
            self.broken.add(stem)
            return
        if root.name != stem:
            message = f"{root.describe()} must be in a file named {root.name}{SCHEMA_SUFFIX}"
            self.problems.error(message, root.position)
        if root.name in self.sources:
            self.problems.error(f"{root.describe()} is defined twice", root.position)
        self.sources[root.name] = _Source(path, root, document, list(root.all("rank-profile")))

    def document_of(self, root: Node) -> Node | None:
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
            self.problems.error(f"{node.describe()} belongs to schema {schema!r}, which does not exist", node.position)

    # Resolving

    def resolve(self) -> dict[str, Schema]:
        resolved = {name: self.schema(name) for name in self.sources}
        return {name: each.schema for name, each in resolved.items() if each}

    def schema(self, name: str) -> _Resolved | None:
        """The resolved schema `name`; None where something that it inherits is broken."""
        if name not in self.resolved:
            source = self.sources[name]
            self.path.append(name)
            parents = {parent: self.parent(parent, source) for parent in self.parent_names(source)}
            self.path.pop()
            whole = {parent: resolved for parent, resolved in parents.items() if resolved}
            usable = len(whole) == len(parents) and name not in self.broken
            self.resolved[name] = _SchemaResolver(source, whole, self.files, self.problems).run() if usable else None
        return self.resolved[name]

    def parent_names(self, source: _Source) -> tuple[str, ...]:
        for name in source.inherited_schemas:
            if name not in source.inherited_documents:
                message = f"schema {source.name} inherits {name}, so its document must inherit {name} too"
                self.problems.error(message, source.document.position)
        return tuple(dict.fromkeys([*source.inherited_documents, *source.inherited_schemas]))

    def parent(self, name: str, source: _Source) -> _Resolved | None:
        position = source.document.position
        if name in self.path:
            cycle = " inherits ".join([*self.path[self.path.index(name) :], name])
            self.problems.error(f"a cycle of schemas: {cycle}", position)
        elif len(self.path) >= limits.INHERITANCE_DEPTH:
            self.problems.error(f"schemas inherit deeper than {limits.INHERITANCE_DEPTH}", position)
        elif name in self.sources:
            return self.schema(name)
        elif name not in self.broken:
            self.problems.error(f"{source.name} inherits {name!r}, which does not exist", position)
        return None


class _SchemaResolver:
    """One schema with everything that it inherits resolved already."""

    def __init__(
        self, source: _Source, parents: Mapping[str, _Resolved], files: Mapping[str, str], problems: Problems
    ) -> None:
        self.source = source
        self.parents = parents
        self.files = files
        self.problems = problems
        self.inherited = [parents[name] for name in source.inherited_schemas]
        self.fields: dict[str, Field] = {}
        self.unusable: set[str] = set()
        """Names of fields that are declared but have a problem; to name them elsewhere is none."""

    def run(self) -> _Resolved:
        self.check_elements()
        self.resolve_fields()
        profiles, reachable = self.rank_settings()
        return _Resolved(self.schema(profiles), profiles, reachable)

    def schema(self, profiles: Mapping[str, RankSettings]) -> Schema:
        types = {name: each.type for name, each in self.fields.items()}
        effective = {**BUILT_IN, **profiles}
        return Schema(
            name=self.source.name,
            document=DocumentType(self.source.name, MappingProxyType(types), self.source.inherited_documents),
            fields=MappingProxyType(self.fields),
            fieldsets=MappingProxyType(self.fieldsets()),
            rank_profiles=MappingProxyType({n: rank_profile(s, self.fields) for n, s in effective.items()}),
            summaries=MappingProxyType(self.summaries()),
            source=self.source.path,
        )

    def check_elements(self) -> None:
        """Refuses the elements of schema and document that nothing executes yet."""
        handled = {"document", "fieldset", "rank-profile", "document-summary", "stemming"}
        for node in self.source.elements:
            if node.keyword == "raw-as-base64-in-summary":
                self.problems.without_effect(node, "there are no raw fields")
            elif node.keyword == "documentid" and node.text == "from-disk":
                self.problems.without_effect(node, "it is the default")
            elif node.keyword == "field":
                self.problems.error(f"{node.describe()} outside the document is not supported yet", node.position)
            elif node.keyword not in handled:
                self.problems.unsupported(node)
        for node in self.source.document.children:
            if node.keyword == "compression":
                self.problems.without_effect(node, "the document store chooses its compression")
            elif node.keyword != "field":
                self.problems.unsupported(node)

    # Fields

    def resolve_fields(self) -> None:
        for parent in self.source.inherited_documents:
            for inherited in self.parents[parent].schema.fields.values():
                self.add(inherited, f"inherited from {parent}", self.source.document.position)
        structs = {node.name for node in (*self.source.elements, *self.source.document.children) if _is_struct(node)}
        stemming = self.stemming()
        for node in self.source.document.all("field"):
            resolved = resolve_field(node, structs, stemming, self.problems)
            if resolved:
                self.add(resolved, "defined", node.position)
            else:
                self.unusable.add(node.name)
        self.unusable |= {node.name for node in self.source.elements if node.keyword in ("field", "import")}

    def add(self, added: Field, how: str, position: Position | None) -> None:
        """Adds a field; one of its name that is not the very same is an error, as fields cannot be overridden."""
        known = self.fields.setdefault(added.name, added)
        if known is not added:
            message = f"field {added.name} is {how}, but was already defined at {known.position}"
            self.problems.error(message, position)

    def stemming(self) -> Stemming:
        stemming: Stemming = "best"
        for node in self.source.root.all("stemming"):
            stemming = stemming_of(node, self.problems)
        return stemming

    # Fieldsets

    def fieldsets(self) -> dict[str, FieldSet]:
        fieldsets = {name: names for parent in self.inherited for name, names in parent.schema.fieldsets.items()}
        own: set[str] = set()
        for node in self.source.root.all("fieldset"):
            if node.name in own:
                self.problems.error(f"fieldset {node.name} is defined twice", node.position)
            own.add(node.name)
            fieldsets[node.name] = FieldSet(node.name, self.fieldset(node), position=node.position)
        return fieldsets

    def fieldset(self, node: Node) -> tuple[str, ...]:
        names: list[str] = []
        for child in node.children:
            if child.keyword == "fields":
                names += child.values
            else:
                self.problems.unsupported(child, node.describe())
        if not names:
            self.problems.error(f"fieldset {node.name} has no fields", node.position)
        for name in names:
            if name not in self.fields and name not in self.unusable:
                self.problems.error(f"fieldset {node.name} names a field that does not exist: {name!r}", node.position)
        return tuple(dict.fromkeys(names))

    # Rank profiles and summaries

    def rank_settings(self) -> tuple[dict[str, RankSettings], dict[str, RankSettings]]:
        """The effective profiles of the schema, and those together with what inheriting documents can reach."""
        reachable = {name: s for parent in self.parents.values() for name, s in parent.reachable.items()}
        inherited = {name: s for parent in self.inherited for name, s in parent.profiles.items()}
        declared = all_profiles(self.source.profiles, self.problems)
        around = Surroundings(
            fields=self.fields.keys() | self.unusable,
            files=self.files,
            directory=_directory(self.source.path),
            problems=self.problems,
        )
        own = ProfileScope(declared, {**reachable, **inherited}).resolve(around)
        return {**inherited, **own}, {**reachable, **inherited, **own}

    def summaries(self) -> dict[str, DocumentSummary]:
        declared: dict[str, Node] = {}
        for node in self.source.root.all("document-summary"):
            if node.name in declared:
                self.problems.error(f"document-summary {node.name} is defined twice", node.position)
            declared.setdefault(node.name, node)
        inherited = {name: s for parent in self.inherited for name, s in parent.schema.summaries.items()}
        return resolve_summaries(declared, inherited, self.fields, self.unusable, self.problems)


def _is_struct(node: Node) -> bool:
    return node.keyword == "struct"


def _directory(path: str) -> str:
    """The directory of a path, with a slash at its end, or an empty string."""
    return path[: path.rfind("/") + 1]
