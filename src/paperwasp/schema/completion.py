"""Completes a schema once all fields of all schemas are known: the schema as the model has it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from paperwasp.base.records import dataclass
from paperwasp.schema.declaration import Declared
from paperwasp.schema.fieldsets import resolve_fieldsets
from paperwasp.schema.indexing import check_script
from paperwasp.schema.model import Field, FieldSet, Schema
from paperwasp.schema.problems import Problems
from paperwasp.schema.rank_checks import check_profile
from paperwasp.schema.rank_profiles import BUILT_IN, FieldRanking, ProfileScope, all_profiles, rank_profile
from paperwasp.schema.rank_settings import RankSettings, Surroundings
from paperwasp.schema.resources import onnx_model, schema_constant
from paperwasp.schema.summaries import resolve_summaries
from paperwasp.schema.summary_model import DocumentSummary
from paperwasp.schema.tree import Node
from paperwasp.schema.values import boolean

_T = TypeVar("_T")


@dataclass(slots=True)
class Completed:
    """A schema, and what those that inherit it need beside it."""

    schema: Schema
    profiles: dict[str, RankSettings]
    """The effective rank profiles that are the schema's own or of schemas it inherits."""
    reachable: dict[str, RankSettings]
    """Those, and the ones of the schemas of inherited documents: what a profile may inherit."""


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

    def gather(self, keyword: str, name: str, resolve: Callable[[Node, Problems], _T | None]) -> Mapping[str, _T]:
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
        declared: dict[str, Node] = {}
        for node in self.source.elements("document-summary"):
            if node.name in declared:
                self.problems.error(f"document-summary {node.name} is defined twice", node.position)
            declared.setdefault(node.name, node)
        inherited = {name: each for parent in self.inherited for name, each in parent.schema.summaries.items()}
        return resolve_summaries(declared, inherited, self.fields, self.declared.unusable, self.problems)
