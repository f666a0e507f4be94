"""Which features `ranking.listFeatures` has of which fields, beside a table of what Vespa's blueprints dump.

Authority: `visitDumpFeatures` of attributematchfeature.cpp, bm25_feature.cpp, elementcompletenessfeature.cpp,
element_similarity_feature.cpp, fieldmatchfeature.cpp, fieldtermmatchfeature.cpp, fieldinfofeature.cpp,
matchesfeature.cpp, native*feature.cpp, termfeature.cpp, textsimilarityfeature.cpp; all other blueprints dump nothing
(those of flow_completeness_feature.cpp are not compiled). The fields are those of proton's indexenvironment.cpp, with
what UriHack.java and AttributeFields.java make of them.
"""

from __future__ import annotations

from collections import Counter

import pytest

from paperwasp.schema import parse_schemas
from paperwasp.search.features import default_rank_features
from paperwasp.search.features.family import RankSetup

PARENT = """schema maker { document maker {
  field country type string { indexing: attribute } } }"""
SCHEMA = """schema thing {
  document thing {
    struct person { field name type string {}
      field age type int {} }
    field title type string { indexing: index | summary }
    field kind type string { indexing: index
      rank: filter }
    field tags type array<string> { indexing: index }
    field both type string { indexing: index | attribute }
    field url type uri { indexing: index }
    field place type position { indexing: attribute }
    field number type int { indexing: attribute }
    field flag type bool { indexing: attribute }
    field weights type weightedset<string> { indexing: attribute }
    field rule type predicate { indexing: attribute
      index: arity: 2 }
    field cells type tensor(x{}) { indexing: attribute }
    field maker type reference<maker> { indexing: attribute }
    field shown type string { indexing: summary }
    field persons type array<person> { indexing: summary
      struct-field name { indexing: attribute } }
    field scores type map<string, int> { indexing: summary
      struct-field key { indexing: attribute }
      struct-field value { indexing: attribute } }
  }
  import field maker.country as country {}
  rank-profile plain {}
  rank-profile told { rank-properties { fieldInfo.enable: "true" } }
}"""
URL = ["url", *(f"url.{part}" for part in ("fragment", "host", "hostname", "path", "port", "query", "scheme"))]
SINGLE = ["title", "both", *URL]
"""Indexed fields of one value that are no filters."""
INDEXED = [*SINGLE, "kind", "tags"]
MATCHED = [
    "place_zcurve", "number", "flag", "weights", "persons.name", "scores.key", "scores.value", "country"
]  # fmt: skip
ATTRIBUTES = [*MATCHED, "rule", "cells", "maker"]
OF_MATCHES = (
    "", "proximity", "completeness", "queryCompleteness", "fieldCompleteness", "orderness", "relatedness", "earliness",
    "longestSequenceRatio", "segmentProximity", "unweightedProximity", "absoluteProximity", "occurrence",
    "absoluteOccurrence", "weightedOccurrence", "weightedAbsoluteOccurrence", "significantOccurrence", "weight",
    "significance", "importance", "segments", "matches", "outOfOrder", "gaps", "gapLength", "longestSequence", "head",
    "tail", "segmentDistance", "degradedMatches",
)  # fmt: skip
OF_FILTERS = ("", "completeness", "queryCompleteness", "weight", "matches", "degradedMatches")
OF_ATTRIBUTES = (
    "", "completeness", "queryCompleteness", "fieldCompleteness", "normalizedWeight", "normalizedWeightedWeight",
    "weight", "significance", "importance", "matches", "totalWeight", "averageWeight", "maxWeight",
)  # fmt: skip
OF_INFO = ("type", "filter", "search", "hit", "len", "first", "last", "cnt")


def _outputs(feature: str, names: tuple[str, ...]) -> list[str]:
    return [f"{feature}.{name}" if name else feature for name in names]


def _expected() -> list[str]:
    found = [
        "firstPhase",
        "nativeAttributeMatch",
        "nativeFieldMatch",
        "nativeProximity",
        "nativeRank",
        "queryTermCount",
    ]
    for number in range(5):
        found += _outputs(f"term({number})", ("connectedness", "significance", "weight"))
    for field in INDEXED:
        found += [f"bm25({field})", f"matches({field})"]
        for number in range(5):
            found += _outputs(f"fieldTermMatch({field},{number})", ("firstPosition", "occurrences", "weight"))
    for field in SINGLE:
        found += _outputs(f"fieldMatch({field})", OF_MATCHES)
        found += _outputs(f"textSimilarity({field})", ("score", "proximity", "order", "queryCoverage", "fieldCoverage"))
    found += _outputs("fieldMatch(kind)", OF_FILTERS)
    for field in [*SINGLE, "tags"]:
        found += _outputs(
            f"elementCompleteness({field})", ("completeness", "fieldCompleteness", "queryCompleteness", "elementWeight")
        )
    found.append("elementSimilarity(tags)")
    for field in MATCHED:
        found += _outputs(f"attributeMatch({field})", OF_ATTRIBUTES)
    return found + [f"matches({field})" for field in ATTRIBUTES]


def _listed(profile: str) -> list[str]:
    schemas = parse_schemas({"schemas/maker.sd": PARENT, "schemas/thing.sd": SCHEMA}).schemas
    schema = schemas["thing"]
    return list(default_rank_features(RankSetup(schema, schema.rank_profiles[profile])))


def test_all_that_vespa_lists_is_listed_once() -> None:
    assert Counter(_listed("plain")) == Counter(_expected())


@pytest.mark.parametrize("output", OF_INFO)
def test_what_fields_are_is_listed_where_it_is_enabled(output: str) -> None:
    listed = set(_listed("told")) - set(_expected())
    assert {name for name in listed if name.endswith(f").{output}")} == {
        f"fieldInfo({field}).{output}" for field in (*INDEXED, *ATTRIBUTES)
    }
    assert listed >= {"fieldInfo.indexCnt", "fieldInfo.attrCnt"}
