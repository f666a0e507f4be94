"""Query profile types: which values a query profile and a request may have under which names.

A field whose type is a query profile type opens a group of names below its own: `user` of type `query-profile:User`
makes `user.age` what `User` says of `age`. A type may hold fields of itself, at any depth.
Vespa: https://docs.vespa.ai/en/reference/querying/query-profiles.html#query-profile-types
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

from msgspec import Struct, field

from paperwasp.base.patterns import compile_later
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import LanguageError, Position, TooLarge


class FieldType(Struct, frozen=True):
    """The type of one field: a word of `PRIMITIVES`, a tensor type, or a query profile of some type or any."""

    word: str
    tensor: TensorType | None = None
    profile_type: ProfileType | None = None

    @property
    def is_profile(self) -> bool:
        return self.word == PROFILE

    def misfit(self, text: str) -> str:
        """Why the text is no value of this type; empty: it is one. Of a query profile: the value at its own name."""
        shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
        if self.tensor is not None:
            return _tensor_misfit(text, shown, self.tensor)
        own = self.profile_type.field("") if self.profile_type is not None else None
        if own is not None:
            return own.type.misfit(text)
        if self.word in PRIMITIVES and PRIMITIVES[self.word](text):
            return ""
        return f"'{shown}' is not {'an' if self.word == 'integer' else 'a'} {self}"

    def __str__(self) -> str:
        if self.tensor is not None:
            return str(self.tensor)
        if not self.is_profile:
            return self.word
        return "reference to a query profile" + (f" of type '{self.profile_type.name}'" if self.profile_type else "")


class FieldDescription(Struct, frozen=True):
    """The declaration of one field in a type of query profiles."""

    name: str
    type: FieldType
    aliases: tuple[str, ...] = ()
    mandatory: bool = False
    overridable: bool = True


class ProfileType(Struct, eq=False, dict=True):
    """A query profile type. Filled while types are read, since they may refer to each other; then never changed."""

    name: str
    declared: dict[str, FieldDescription] = field(default_factory=dict)
    inherits: list[ProfileType] = field(default_factory=list)
    declared_strict: bool = False
    declared_match_path: bool = False
    is_nested: bool = False
    """Made for fields with dots in their names, within the type that declares them."""
    position: Position | None = None

    @cached_property
    def fields(self) -> Mapping[str, FieldDescription]:
        """Inherited ones included: the first found depth first, from left to right."""
        fields: dict[str, FieldDescription] = {}
        for parent in reversed(self.inherits):
            fields.update(parent.fields)
        return fields | self.declared

    @cached_property
    def strict(self) -> bool:
        return self.declared_strict or any(parent.strict for parent in self.inherits)

    @cached_property
    def match_path(self) -> bool:
        return self.declared_match_path or any(parent.match_path for parent in self.inherits)

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """Alias in lower case → field."""
        return {alias.lower(): field.name for field in self.fields.values() for alias in field.aliases}

    @cached_property
    def ancestors(self) -> frozenset[ProfileType]:
        """This type and all that it inherits."""
        return frozenset((self,)).union(*(parent.ancestors for parent in self.inherits))

    def field(self, name: str) -> FieldDescription | None:
        return self.fields.get(name)

    def unalias(self, name: str) -> str:
        return self.aliases.get(name.lower(), name)

    def is_a(self, other: ProfileType) -> bool:
        return other in self.ancestors

    def __str__(self) -> str:
        return f"query profile type '{self.name}'"


PROFILE: Final = "query-profile"
_EMBED: Final = compile_later(r"\s*embed\s*\(")
_SHOWN_CHARACTERS: Final = 100
_INTEGER: Final = compile_later(r"[+-]?\d{1,19}", re.ASCII)


def _integer(bits: int) -> Callable[[str], bool]:
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    return lambda text: _INTEGER.fullmatch(text) is not None and least <= int(text) <= most


def _is_number(text: str) -> bool:
    try:
        return "_" not in text and isinstance(
            float(text.rstrip("fFdD") if text[:1].lower() not in "ni" else text), float
        )
    except ValueError:
        return False


def _tensor_misfit(text: str, shown: str, type_: TensorType) -> str:
    """`embed(…)` stands for a tensor too; whether it can be made is found out where it is used."""
    if _EMBED.match(text):
        return ""
    try:
        parse_tensor(text, type_)
    except LanguageError as error:
        return f"'{shown}' is not a {type_}: {error.bare_message}"
    except TooLarge as error:
        return error.message
    return ""


def _anything(text: str) -> bool:
    return True


PRIMITIVES: Final[Mapping[str, Callable[[str], bool]]] = {
    "string": _anything,
    "integer": _integer(32),
    "long": _integer(64),
    "float": _is_number,
    "double": _is_number,
    "boolean": _anything,
    "query": _anything,
}
"""Word → whether a text is a value of it. A boolean is true if it says so and false if it says anything else."""


# The types that are always there: the parameters of a query, group by group, as a table.
#
# A type of the application inherits `native` to admit them; a field such as `ranking.features.query(x)` extends the
# group that it is in. Vespa: https://docs.vespa.ai/en/reference/api/query.html#native-execution-parameters


_Fields = Mapping[str, str]
"""Field → its type, then its aliases. A type that is no primitive is another group of the table; `*` is any profile."""

_GROUPS: Final[Mapping[str, _Fields]] = {
    "native": {
        "offset": "integer start", "hits": "integer count", "queryProfile": "string", "searchChain": "string",
        "noCache": "boolean", "groupingSessionCache": "boolean", "timeout": "string", "sourceName": "string",
        "providerName": "string", "model": "model", "select": "select", "dispatch": "dispatch",
        "ranking": "ranking", "presentation": "presentation", "trace": "trace",
    },
    "DefaultProperties": {"maxOffset": "integer", "maxHits": "integer"},
    "model": {
        "queryString": "string query", "type": "model.type", "filter": "string filter",
        "defaultIndex": "string default-index", "language": "string language lang", "locale": "string locale",
        "encoding": "string encoding", "sources": "string sources search", "searchPath": "string searchpath",
        "searchGroup": "string searchgroup", "restrict": "string restrict",
    },
    "model.type": {
        "": "string type", "composite": "string", "tokenization": "string", "syntax": "string", "profile": "string",
        "isYqlDefault": "boolean",
    },
    "select": {"": "string", "where": "string", "grouping": "string", "fields": "string"},
    "dispatch": {"topKProbability": "double", "maxHitsPerNode": "integer", "compression": "string"},
    "ranking": {
        "profile": "string ranking", "location": "string location", "sorting": "string sorting sortspec",
        "listFeatures": "string rankfeatures", "freshness": "string datetime", "queryCache": "boolean",
        "rerankCount": "integer", "keepRankCount": "integer", "totalKeepRankCount": "integer",
        "rankScoreDropLimit": "double", "globalPhase": "ranking.globalPhase",
        "matchPhase": "ranking.matchPhase matchPhase", "secondPhase": "ranking.secondPhase",
        "softtimeout": "ranking.softtimeout", "matching": "ranking.matching",
        "significance": "ranking.significance", "features": "* rankfeature input", "properties": "* rankproperty",
        "elementGap": "*", "firstPhase": "ranking.firstPhase", "matchFeatures": "ranking.matchFeatures",
    },
    "ranking.firstPhase": {"expression": "string"},
    "ranking.matchFeatures": {"expression": "string"},
    "ranking.globalPhase": {"rerankCount": "integer", "rankScoreDropLimit": "double", "expression": "string"},
    "ranking.secondPhase": {
        "rerankCount": "integer", "totalRerankCount": "integer", "rankScoreDropLimit": "double", "expression": "string",
    },
    "ranking.matchPhase": {
        "": "string", "attribute": "string", "ascending": "boolean", "maxHits": "long", "totalMaxHits": "long",
        "maxFilterCoverage": "double", "diversity": "ranking.matchPhase.diversity",
    },
    "ranking.matchPhase.diversity": {
        "attribute": "string", "minGroups": "long", "cutoff": "ranking.matchPhase.diversity.cutoff",
    },
    "ranking.matchPhase.diversity.cutoff": {"factor": "double", "strategy": "string"},
    "ranking.softtimeout": {"enable": "boolean", "factor": "double", "tailcost": "double"},
    "ranking.matching": {
        "termwiseLimit": "double", "numThreadsPerSearch": "integer", "numSearchPartitions": "integer",
        "minHitsPerThread": "integer", "postFilterThreshold": "double", "approximateThreshold": "double",
        "filterFirstThreshold": "double", "filterFirstExploration": "double", "explorationSlack": "double",
        "targetHitsMaxAdjustmentFactor": "double", "filterThreshold": "double", "weakand": "*",
        "anntimebudget": "string", "anntimeout": "ranking.matching.anntimeout",
    },
    "ranking.matching.anntimeout": {"enable": "boolean", "factor": "double"},
    "ranking.significance": {"useModel": "boolean"},
    "presentation": {
        "bolding": "boolean bolding", "timing": "boolean timing", "summary": "string summary",
        "summaryFields": "string summaryFields", "format": "presentation.format", "template": "string",
    },
    "presentation.format": {"": "string format template", "tensors": "string format.tensors"},
    "trace": {
        "level": "integer tracelevel", "explainLevel": "integer explainlevel", "profileDepth": "integer",
        "timestamps": "boolean", "timingDetails": "boolean", "query": "boolean", "profile": "boolean",
        "profiling": "*",
    },
}  # fmt: skip
_OPEN: Final = ("native", "DefaultProperties")
"""Groups that admit what they do not declare."""


def native_types() -> dict[str, ProfileType]:
    """Every built-in type by the name that a package finds it by."""
    types = {
        name: ProfileType(name.rpartition(".")[2], declared_strict=name not in _OPEN, is_nested="." in name)
        for name in _GROUPS
    }
    for name, fields in _GROUPS.items():
        for name_of_field, words in fields.items():
            word, *aliases = words.split()
            types[name].declared[name_of_field] = FieldDescription(name_of_field, _type_of(word, types), tuple(aliases))
    return {name: type_ for name, type_ in types.items() if not type_.is_nested}


def _type_of(word: str, types: Mapping[str, ProfileType]) -> FieldType:
    if word in types:
        return FieldType(PROFILE, profile_type=types[word])
    return FieldType(PROFILE if word == "*" else word)
