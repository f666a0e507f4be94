"""Rank profiles of a schema, compiled: where schema, expression language and rank features meet."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct

from paperwasp import limits
from paperwasp.core.steps import step
from paperwasp.errors import Finding, LanguageError
from paperwasp.ranking import CompiledProfile, ProfileError, Unexecuted
from paperwasp.ranking import compile_profile as compile_source
from paperwasp.ranking.declarations import Declarations, Probe
from paperwasp.ranking.onnx.probe import probe
from paperwasp.ranking.query_expressions import RankExpressions, profile_with
from paperwasp.ranking.typed_expression import TypedExpression, coarse, fields_of_profile, type_expression
from paperwasp.schema.files import PackageFiles
from paperwasp.schema.model import RankProfile, Schema
from paperwasp.search.features.catalog import Catalog, DescribedFeatures, default_rank_features
from paperwasp.search.features.family import RankSetup


def compile_profile(
    schema: Schema,
    profile: RankProfile,
    declarations: Declarations | None = None,
    described: DescribedFeatures | None = None,
    given: Collection[str] = (),
) -> CompiledProfile | Unexecuted:
    """`profile` as programs; raises ProfileError that names every problem with its place.

    `declarations` and `described`: what the profiles of one schema share. `given`: the kinds of expressions that are
    those of a query.
    """
    checked = declarations or Declarations(schema.files)
    setup = RankSetup(schema, profile, checked)
    catalog = Catalog(setup, {} if described is None else described)
    return compile_source(profile, catalog, lambda: default_rank_features(setup), schema.source, checked, given)


def compile_profiles(
    schema: Schema, files: Mapping[str, bytes] | None = None, probe: Probe | None = None
) -> Mapping[str, CompiledProfile | Unexecuted]:
    """All rank profiles of `schema`; raises one ProfileError for the problems of all of them, or of the first
    profiles if there are many problems.

    `files`: those of the application package, by path; without them those of the schema. Where there are none, files
    that profiles name are not checked. `probe`: tries ONNX models that nobody trusts yet.
    """
    compiled: dict[str, CompiledProfile | Unexecuted] = {}
    problems: list[LanguageError] = []
    declarations = Declarations(schema.files if files is None else PackageFiles(files), probe)
    described = DescribedFeatures()
    for name, profile in schema.rank_profiles.items():
        step(f"rank-profile {name} of schema {schema.name}")
        try:
            compiled[name] = compile_profile(schema, profile, declarations, described)
        except ProfileError as error:
            problems.extend(error.problems)
        if len(problems) >= limits.SCHEMA_PROBLEMS:
            break
    if problems:
        raise ProfileError(problems)
    return compiled


class ServedProfile(Struct, frozen=True, eq=False, weakref=True):
    """A rank profile of one schema, compiled once for a container and a content node of the same process."""

    schema: Schema
    name: str
    declared: RankProfile
    """The profile as the schema declares it, with the expressions of a query in place of its own."""
    compiled: CompiledProfile | Unexecuted
    is_of_query: bool = False
    """Whether it has expressions of a query."""


_Key = tuple[int, str, RankExpressions | None]
_served: Final[WeakValueDictionary[_Key, ServedProfile]] = WeakValueDictionary()
"""By the schema's identity, which lives as long as the entry, the profile's name, and the expressions of a query. Who
uses an entry keeps it."""


def served_profile(schema: Schema, name: str, expressions: RankExpressions | None = None) -> ServedProfile | None:
    """Return a rank profile of a schema, compiled unless somebody keeps it already; None: there is no such profile.

    `expressions`: those of a query, in place of the profile's. Any thread. Errors: LanguageError for what cannot be
    compiled, ProfileError where there may be more than one problem.
    """
    key = id(schema), name, expressions
    found = _served.get(key)
    if found is None and (declared := schema.rank_profiles.get(name)) is not None:
        given: Collection[str] = ()
        if expressions is not None:
            declared, given = profile_with(declared, expressions), expressions.kinds
        compiled = compile_profile(schema, declared, given=given)
        found = _served.setdefault(key, ServedProfile(schema, name, declared, compiled, expressions is not None))
    return found


def typed_expression(schema: Schema, name: str, text: str) -> TypedExpression:
    """The type of an expression over a rank profile of a schema, with what is wrong with it. Errors: KeyError."""
    profile, declarations = schema.rank_profiles[name], Declarations(schema.files, probe)
    catalog = Catalog(RankSetup(schema, profile, declarations), {})
    return type_expression(text, schema.name, profile, catalog, declarations)


def check_profiles(schema: Schema, files: Mapping[str, bytes]) -> tuple[Finding, ...]:
    """Return the findings of a deployment about rank profiles of a schema; raises ProfileError for what is wrong."""
    return unexecuted_findings(schema, compile_profiles(schema, files, probe))


def unexecuted_findings(schema: Schema, compiled: Mapping[str, CompiledProfile | Unexecuted]) -> tuple[Finding, ...]:
    """Return the findings about compiled profiles: those not executed, undeclared inputs, coarse attributes."""
    findings = []
    for name, profile in compiled.items():
        position = schema.rank_profiles[name].position
        if isinstance(profile, Unexecuted):
            findings.append(Finding(f"rank-profile {name} of schema {schema.name} is {profile}", position))
        if profile.undeclared_inputs:
            inputs = ", ".join(f"query({input_})" for input_ in profile.undeclared_inputs)
            begun = f"The following inputs used in rank-profile {name} are not declared and will be interpreted as"
            findings.append(Finding(f"{begun} scalars, not tensors: [{inputs}]", position))
        if isinstance(profile, CompiledProfile):
            notes = coarse(schema, fields_of_profile(profile))
            findings += [Finding(f"rank-profile {name} of schema {schema.name}: {note}", position) for note in notes]
    return tuple(findings)
