"""Query types: how a text that is not YQL is read.

A type has three parts, each of which may be set alone: which operator its terms are put together by, what makes
tokens of it, and which signs in it mean something. A name, such as `weakAnd`, stands for a value of each.
Vespa: `model.type` in https://docs.vespa.ai/en/reference/api/query.html
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from paperwasp.base.records import replace
from paperwasp.errors import IllegalQuery

COMPOSITES: Final = ("and", "or", "weakAnd", "phrase", "near", "oNear")
TOKENIZATIONS: Final = ("internal", "linguistics")
SYNTAXES: Final = ("none", "simple", "web", "advanced", "yql")


class QueryType(Struct, frozen=True):
    """The reading of a text. `profile` is a linguistics profile in place of those of the fields."""

    composite: str
    tokenization: str
    syntax: str
    profile: str = ""

    def having(self, composite: str = "", tokenization: str = "", syntax: str = "", profile: str = "") -> QueryType:
        """This type with other parts, where they are not empty. Errors: IllegalQuery."""
        if not (composite or tokenization or syntax or profile):
            return self
        changed = replace(
            self,
            composite=_one_of(COMPOSITES, "composite", composite) or self.composite,
            tokenization=_one_of(TOKENIZATIONS, "tokenization", tokenization) or self.tokenization,
            syntax=_one_of(SYNTAXES, "syntax", syntax) or self.syntax,
            profile=profile or self.profile,
        )
        if changed.tokenization == "linguistics" and changed.syntax != "none":
            raise IllegalQuery(
                f"A query type with syntax '{changed.syntax}' cannot have tokenization 'linguistics', "
                "which goes only with syntax 'none'"
            )
        return changed


def _one_of(known: tuple[str, ...], part: str, name: str) -> str:
    if name and name not in known:
        raise IllegalQuery(f"'{name}' is not a {part} of a query type; known are {', '.join(known)}")
    return name


QUERY_TYPES: Final[Mapping[str, QueryType]] = MappingProxyType(
    {
        "all": QueryType("and", "internal", "simple"),
        "any": QueryType("or", "internal", "simple"),
        "weakAnd": QueryType("weakAnd", "internal", "simple"),
        "web": QueryType("and", "internal", "web"),
        "phrase": QueryType("phrase", "internal", "none"),
        "tokenize": QueryType("weakAnd", "internal", "none"),
        "linguistics": QueryType("weakAnd", "linguistics", "none"),
        "advanced": QueryType("and", "internal", "advanced"),
        "yql": QueryType("and", "internal", "yql"),
    }
)
"""The names of `model.type`."""

_BY_LOWER_CASE: Final = {name.lower(): name for name in QUERY_TYPES} | {"adv": "advanced"}


def query_type(name: str) -> str:
    """The query type of that name, in any case. Errors: IllegalQuery."""
    found = _BY_LOWER_CASE.get(name.lower())
    if found is None:
        raise IllegalQuery(f"Could not set 'model.type' to '{name}': no such query type")
    return found


def type_of(type: str | QueryType) -> QueryType:
    """A type given by its name, as QUERY_TYPES has it, or as itself."""
    return QUERY_TYPES[type] if isinstance(type, str) else type
