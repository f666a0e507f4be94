"""The types that are always there: the parameters of a query, group by group, as a table.

A type of the application inherits `native` to admit them; a field such as `ranking.features.query(x)` extends the group
that it is in.
Vespa: https://docs.vespa.ai/en/reference/api/query.html#native-execution-parameters
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paperwasp.application.query_profiles.field_types import PROFILE, FieldDescription, FieldType, ProfileType

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
        for field, words in fields.items():
            word, *aliases = words.split()
            types[name].declared[field] = FieldDescription(field, _type_of(word, types), tuple(aliases))
    return {name: type_ for name, type_ in types.items() if not type_.is_nested}


def _type_of(word: str, types: Mapping[str, ProfileType]) -> FieldType:
    if word in types:
        return FieldType(PROFILE, profile_type=types[word])
    return FieldType(PROFILE if word == "*" else word)
