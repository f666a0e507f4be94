"""Random queries on random schemas have one answer, whether kernels or the general steps find, rank and write the hits.

What they match is compared with a plain reading of them as well. PAPERWASP_STEP_CASES says how many queries (default:
a thousand), PAPERWASP_SEED which.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest

from paperwasp.http.messages import Response
from paperwasp.schema import parse_schemas
from paperwasp.search import search
from paperwasp.search.features import native_query
from paperwasp.search.operators.boolean import AndItem, NotItem, OrItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.phases import first_phase, pruning
from paperwasp.search.show import hits
from paperwasp.storage.index import segments
from tests.chance import SEED
from tests.content.nodes import remove
from tests.content.row_checks import fill_rows
from tests.search.naive_matching import matches
from tests.search.naive_search import WORDS, Document, Domain, Text, random_domain, random_query
from tests.search.search_cluster import SearchCluster, search_cluster

CASES = int(os.environ.get("PAPERWASP_STEP_CASES", "1000"))
QUERIES = 100
"""Of each schema."""
PROFILES = """
  rank-profile one { first-phase { expression: bm25(text0) } }
  rank-profile sum { first-phase { expression: %s } }
  rank-profile native { first-phase { expression: nativeRank } }
  rank-profile phased inherits sum {
    match-features: nativeRank bm25(text0)
    second-phase { expression: firstPhase + 0.5 * nativeRank
      rerank-count: 5 } }
  document-summary flat { %s }
"""


def test_kernels_answer_what_the_general_steps_do(monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {SEED}")  # noqa: T201
    monkeypatch.setattr(segments, "LEAST_DOCUMENTS_OF_BITMAPS", 1)
    steps = Counter[str]()
    for round_ in range(CASES // QUERIES):
        steps += compare(random.Random(f"{SEED}/{round_}"), f"seed {SEED}, round {round_}")
    assert steps["best"] > CASES // 10 and steps["native"] > CASES // 10 and steps["page"] > CASES // 10, steps


def compare(rng: random.Random, which: str) -> Counter[str]:
    domain = random_domain(rng)
    found = parse_schemas({"schemas/thing.sd": with_profiles(domain)})
    assert not [f for f in found.findings if f.level == "ERROR"], (which, domain.declaration, found.findings)
    documents: dict[str, Document] = {}
    steps = Counter[str]()
    with TemporaryDirectory() as directory, search_cluster(Path(directory), found.schemas) as things:
        for _ in range(rng.randint(1, 4)):
            batch = {rng.randrange(80): domain.document(rng) for _ in range(rng.randint(1, 40))}
            things.feed(batch)
            documents |= {str(name): document for name, document in batch.items()}
            gone = str(rng.randrange(80))
            documents.pop(gone, None)
            things.node.apply(remove(gone, "thing"))
        fill_rows(things.node.node)
        for _ in range(QUERIES):
            query = worded_query(rng, domain) if rng.random() < 0.6 else random_query(rng, domain)
            steps += compare_one(rng, things, query, documents, domain, which)
    return steps


def with_profiles(domain: Domain) -> str:
    texts = [field for field in domain.fields if isinstance(field, Text)]
    weighted = " + ".join(f"{1 + number / 3} * bm25({text.name})" for number, text in enumerate(texts))
    shown = " ".join(f"summary {field.name} {{}}" for field in domain.fields)
    declared = domain.declaration.replace("index | summary\n", "index | summary\n      index: enable-bm25\n")
    return declared.rstrip().removesuffix("}") + PROFILES % (weighted, shown) + "}\n"


def worded_query(rng: random.Random, domain: Domain, depth: int = 1) -> Item:
    """A query of words above all, as users write them: the class that kernels run."""
    fields = [field.name for field in domain.fields if isinstance(field, Text)]
    words: tuple[Item, ...] = tuple(
        WordItem(rng.choice((fields[0], fields[0], rng.choice(fields), "default")), rng.choice(WORDS))
        for _ in range(rng.randint(1, 4))
    )
    if depth and rng.random() < 0.3:
        words = (*words, worded_query(rng, domain, depth - 1))
    if depth and rng.random() < 0.3:
        words = (*words, random_query(rng, domain, 0))
    if len(words) == 1:
        return words[0]
    return rng.choice((OrItem, OrItem, AndItem, WeakAndItem, NotItem))(words)


def compare_one(
    rng: random.Random,
    things: SearchCluster,
    query: Item,
    documents: dict[str, Document],
    domain: Domain,
    which: str,
) -> Counter[str]:
    parameters: dict[str, object] = {
        "yql": f"select * from thing where {query.to_yql()}",
        "ranking": rng.choice(("one", "sum", "sum", "native", "phased")),
        "hits": rng.choice((1, 3, 10, 100)),
        "offset": rng.choice((0, 0, 0, 2)),
        "summary": rng.choice(("flat", "flat", "default")),
    }
    if rng.random() < 0.1:
        parameters["sorting"] = rng.choice(("-number0", "+[relevance]", "-flag -[rank]"))
    steps = Counter[str]()
    with pytest.MonkeyPatch.context() as patch:
        count_kernels(patch, steps)
        by_kernels = things.answer(**parameters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_phase, "pruned_hits", lambda *_: None)
        patch.setattr(native_query._NativeQuery, "of", lambda *_: None)
        patch.setattr(search, "rendered_hits", lambda *_: None)
        in_general = things.answer(**parameters)
    about = f"{which}: {parameters}\n{query}\n{domain.declaration}"
    assert (by_kernels.status, by_kernels.body) == (in_general.status, in_general.body), about
    if not any(isinstance(item, WeakAndItem) for item in query.walk()):
        expected = {name for name, document in documents.items() if matches(query, document, domain)}
        check_matches(by_kernels, expected, parameters, about)
    return steps


def count_kernels(patch: pytest.MonkeyPatch, steps: Counter[str]) -> None:
    """Count which steps kernels do."""
    pruned_hits, rendered_hits = pruning.pruned_hits, hits.rendered_hits
    native = native_query._NativeQuery.of

    def count(step: str, found: object) -> None:
        steps[step] += found is not None

    def prune(*given: Any) -> object:
        found = pruned_hits(*given)
        count("best", found)
        return found

    def render(*given: Any) -> object:
        found = rendered_hits(*given)
        count("page", found)
        return found

    def of(*given: Any) -> object:
        found = native(*given)
        count("native", found)
        return found

    patch.setattr(first_phase, "pruned_hits", prune)
    patch.setattr(search, "rendered_hits", render)
    patch.setattr(native_query._NativeQuery, "of", of)


def check_matches(answer: Response, expected: set[str], parameters: Mapping[str, object], about: str) -> None:
    """Check the total count, and that all hits are among those that match."""
    root = orjson.loads(answer.body)["root"]
    ids = [hit["fields"].get("documentid") for hit in root.get("children", ())]
    wanted = max(0, min(int(str(parameters["hits"])), len(expected) - int(str(parameters["offset"]))))
    assert root["fields"]["totalCount"] == len(expected), about
    assert len(ids) == wanted, f"{answer.body!r} {about}"
    assert {id_.rsplit(":", 1)[1] for id_ in ids if id_} <= expected, about
