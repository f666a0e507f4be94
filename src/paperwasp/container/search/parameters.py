"""From the names and values of a request to its settings, under a query profile.

A query profile gives values for what the request leaves out. In profiles parameters have their full names: an alias
there is a property of the application's own.
Vespa: https://docs.vespa.ai/en/reference/api/query.html
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from paperwasp.application.query_profiles import NO_QUERY_PROFILES, QueryProfiles, ResolvedProfile
from paperwasp.container.search.parameter_table import full_name, is_full_name, set_parameter
from paperwasp.container.search.settings import RequestValues, SearchParameters
from paperwasp.container.search.values import check_format
from paperwasp.errors import IllegalQuery

_REFERENCE: Final = "See https://docs.vespa.ai/en/reference/api/query.html#native-execution-parameters"


def read_parameters(
    pairs: Iterable[tuple[str, str]], query_profiles: QueryProfiles = NO_QUERY_PROFILES
) -> SearchParameters:
    """The parameters of a request; of several for one thing the last wins.

    Errors: IllegalQuery naming the parameter and the value; InvalidQuery for an unknown search chain.
    """
    pairs = list(pairs)
    parameters = SearchParameters(RequestValues(given=dict(pairs)))
    name = _query_profile(pairs)
    if name is not None or query_profiles.has_default:
        parameters.profile = query_profiles.compile(name or "", parameters.values.given)
    if parameters.profile is not None:
        _set_under_profile(parameters, parameters.profile, pairs, query_profiles)
    elif name is not None:
        raise IllegalQuery(f"Could not resolve query profile '{name}'")
    else:
        for key, value in pairs:
            set_parameter(parameters, key, value)
    _check_format(parameters.presentation.format or "")
    check_window(parameters, parameters.values)
    if parameters.presentation.callback and parameters.presentation.format == "cbor":
        raise IllegalQuery("'jsoncallback' needs the format json: cbor is no JavaScript")
    return parameters


def _check_format(name: str) -> None:
    """Errors: IllegalQuery. Only the format that is used is looked for, as in Vespa (SearchHandler.java)."""
    try:
        check_format(name)
    except ValueError as error:
        raise IllegalQuery(f"Could not set 'presentation.format' to '{name}': {error}") from None


def _query_profile(pairs: Iterable[tuple[str, str]]) -> str | None:
    """The name of the query profile that the request names. Errors: IllegalQuery for what only a profile may set."""
    name: str | None = None
    for key, value in pairs:
        lower = key.lower()
        if lower == "queryprofile":
            name = value
        elif lower in _FROM_PROFILE_ONLY:
            raise IllegalQuery(f"{full_name(key)} must be specified in a query profile.")
    return name


_FROM_PROFILE_ONLY: Final = frozenset(("maxhits", "maxoffset", "grouping.globalmaxgroups"))


def _set_under_profile(
    parameters: SearchParameters,
    profile: ResolvedProfile,
    pairs: Iterable[tuple[str, str]],
    query_profiles: QueryProfiles,
) -> None:
    """Sets what the request says, as far as the profile lets it, and what the profile says of the rest."""
    request = parameters.values.given
    named = {full_name(name): value for name, value in pairs}
    values = query_profiles.values(profile, named, request, full_name)
    for name, value in values.items():
        if name in named or is_full_name(name):
            set_parameter(parameters, name, value)
    if profile.fixed:
        request = {name: value for name, value in request.items() if not profile.rule(full_name(name)).is_fixed}
    for name in parameters.values.inputs:
        declared = profile.rule(f"ranking.features.query({name})").declared
        if declared is not None and declared.type.tensor is not None:
            parameters.input_types[name] = declared.type.tensor
    parameters.values.given = request | values


def check_window(parameters: SearchParameters, values: RequestValues) -> None:
    """Errors: IllegalQuery for more hits, or a larger offset, than the query profile allows."""
    hits, offset = values.hits, values.offset
    if hits > parameters.max_hits:
        raise IllegalQuery(f"{hits} hits requested, configured limit: {parameters.max_hits}. {_REFERENCE}")
    if offset > parameters.max_offset:
        raise IllegalQuery(f"Offset of {offset} requested, configured limit: {parameters.max_offset}. {_REFERENCE}")
