"""Random expressions that queries bring rank as rank profiles with the same expressions do, indexed and streamed.

PAPERWASP_PROFILE_CASES says how many (default: a few dozen), PAPERWASP_SEED which.
"""

from __future__ import annotations

import os
import random
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Put
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.errors import InvalidQuery
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.ranking.query_expressions import RankExpressions
from paperwasp.search.query import Hit, Streaming
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.chance import SEED
from tests.content.nodes import TestNode
from tests.search.queries import query_of
from tests.search.random_profiles import INPUTS, document, features, number, query, schema_with
from tests.search.test_random_profiles import started

CASES = int(os.environ.get("PAPERWASP_PROFILE_CASES", "24"))
PROFILES, QUERIES = 12, 8
"""Of each round: profiles of one schema, and queries of each profile."""
MODES = ("memory", "streaming")


def expressions_of(draw: random.Random, names: list[str], numbers: list[str]) -> RankExpressions:
    inner = [each for each in numbers if not each.startswith(("firstPhase", "secondPhase", "relevanceScore"))]
    return RankExpressions(
        number(draw, inner) if draw.random() < 0.8 else None,
        number(draw, [*inner, "firstPhase"]) if draw.random() < 0.6 else None,
        number(draw, [*inner, "firstPhase"]) if draw.random() < 0.4 else None,
        " ".join(dict.fromkeys(draw.sample(names, 6))) if draw.random() < 0.6 else None,
    )


def declared(name: str, inherited: str, given: RankExpressions) -> str:
    """The rank profile that says what the expressions do."""
    lines = [f"rank-profile {name} inherits {inherited} {{"]
    if given.first_phase is not None:
        lines.append(f"first-phase {{ expression {{ {given.first_phase} }} }}")
    if given.second_phase is not None:
        lines.append(f"second-phase {{ expression {{ {given.second_phase} }} }}")
    if given.global_phase is not None:
        lines.append(f"global-phase {{ expression {{ {given.global_phase} }} }}")
    if given.match_features is not None:
        lines.append(f"match-features {{ {given.match_features} }}")
    return "\n".join([*lines, "}"])


@pytest.mark.parametrize("round_", range(max(1, CASES // PROFILES)))
def test_expressions_of_queries_rank_as_those_of_profiles(round_: int, tmp_path: Path) -> None:
    draw = random.Random(f"{SEED}/{round_}")
    names, numbers = features(draw, 60)
    given = [expressions_of(draw, names, numbers) for _ in range(PROFILES)]
    own = "rank-profile own inherits base { first-phase { expression: nativeRank * c }\n match-features: helper }"
    bases = [draw.choice(("base", "own")) for _ in given]
    profiles = [declared(f"p{place}", base, each) for place, (base, each) in enumerate(zip(bases, given, strict=True))]
    schema = schema_with([own, *profiles])
    puts = [
        Put(DocumentId.parse(f"id:n:s:g=all:{place}"), read_fields(schema.document, document(draw)))
        for place in range(draw.randint(1, 40))
    ]
    with ExitStack() as stack:
        nodes = {mode: stack.enter_context(closing(started(tmp_path / mode, schema, puts, mode))) for mode in MODES}
        served = ServedSchemas()
        for place, each in enumerate(given):
            for _ in range(QUERIES):
                where = query(draw)
                for mode, node in nodes.items():
                    expected = asked(node, f"p{place}", where, served, mode)
                    found = asked(node, bases[place], where, served, mode, None if not any(each) else each)
                    message = f"PAPERWASP_SEED={SEED}, round {round_}, {each}, {where}, {mode}"
                    assert found == expected, message


def asked(
    node: TestNode,
    profile: str,
    where: str,
    served: ServedSchemas,
    mode: str,
    expressions: RankExpressions | None = None,
) -> list[str]:
    """The hits in their order, with all their numbers, as texts: NaN is the same as NaN."""
    request = query_of(
        parse_yql(f"select * from s where {where}").tree,
        ("s",),
        profile,
        hits=100,
        inputs={key: parse_tensor(text) for key, text in INPUTS.items()},
        rank_properties={"dotProduct.v": "{a:1,b:2}"},
        now_seconds=10**9,
        global_hits=20,
        streaming=Streaming(group="all") if mode == "streaming" else None,
        expressions=expressions,
    )
    try:
        return [_text(hit) for hit in search(node.node.reader.view(), request, served).hits]
    except InvalidQuery as error:
        return [error.message]


def _text(hit: Hit) -> str:
    shown = {name: str(value) for name, value in (hit.match_features or {}).items()}
    return f"{hit.document_id} {hit.relevance} {sorted(shown.items())} {hit.global_inputs}"
