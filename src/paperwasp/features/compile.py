"""Rank profiles of a schema, compiled: where schema, expression language and rank features meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from paperwasp import limits
from paperwasp.errors import Finding, LanguageError
from paperwasp.features.catalog import Catalog, DescribedFeatures, default_rank_features
from paperwasp.features.family import RankSetup
from paperwasp.ranking import CompiledProfile, ProfileError, Unexecuted
from paperwasp.ranking import compile_profile as compile_source
from paperwasp.ranking.declarations import Declarations, Probe
from paperwasp.ranking.onnx_probe import probe
from paperwasp.schema.files import PackageFiles
from paperwasp.schema.model import RankProfile, Schema


def compile_profile(
    schema: Schema,
    profile: RankProfile,
    declarations: Declarations | None = None,
    described: DescribedFeatures | None = None,
) -> CompiledProfile | Unexecuted:
    """`profile` as programs; raises ProfileError that names every problem with its place.

    `declarations` and `described`: what the profiles of one schema share.
    """
    checked = declarations or Declarations(schema.files)
    setup = RankSetup(schema, profile, checked)
    catalog = Catalog(setup, {} if described is None else described)
    return compile_source(profile, catalog, lambda: default_rank_features(setup), schema.source, checked)


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
        try:
            compiled[name] = compile_profile(schema, profile, declarations, described)
        except ProfileError as error:
            problems.extend(error.problems)
        if len(problems) >= limits.SCHEMA_PROBLEMS:
            break
    if problems:
        raise ProfileError(problems)
    return compiled


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ServedProfile:
    """A rank profile of one schema, compiled once for a container and a content node of the same process."""

    schema: Schema
    name: str
    compiled: CompiledProfile | Unexecuted


_served: Final[WeakValueDictionary[tuple[int, str], ServedProfile]] = WeakValueDictionary()
"""By the schema's identity, which lives as long as the entry, and the profile's name. Who uses an entry keeps it."""


def served_profile(schema: Schema, name: str) -> ServedProfile | None:
    """Return a rank profile of a schema, compiled unless somebody keeps it already; None: there is no such profile.

    Any thread. Errors: ProfileError for what cannot be compiled.
    """
    found = _served.get((id(schema), name))
    if found is None and (declared := schema.rank_profiles.get(name)) is not None:
        found = _served.setdefault((id(schema), name), ServedProfile(schema, name, compile_profile(schema, declared)))
    return found


def check_profiles(schema: Schema, files: Mapping[str, bytes]) -> tuple[Finding, ...]:
    """What to tell at a deployment of the rank profiles of a schema; raises ProfileError for what is wrong."""
    return unexecuted_findings(schema, compile_profiles(schema, files, probe))


def unexecuted_findings(schema: Schema, compiled: Mapping[str, CompiledProfile | Unexecuted]) -> tuple[Finding, ...]:
    """What to tell of the profiles that are deployed and not executed yet."""
    findings = []
    for name, profile in compiled.items():
        position = schema.rank_profiles[name].position
        if isinstance(profile, Unexecuted):
            findings.append(Finding(f"rank-profile {name} of schema {schema.name} is {profile}", position))
        if profile.undeclared_inputs:
            inputs = ", ".join(f"query({input_})" for input_ in profile.undeclared_inputs)
            told = f"The following inputs used in rank-profile {name} are not declared and will be interpreted as"
            findings.append(Finding(f"{told} scalars, not tensors: [{inputs}]", position))
    return tuple(findings)
