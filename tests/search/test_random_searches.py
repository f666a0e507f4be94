"""Random queries on random documents of random schemas match what a plain reading of them matches.

PAPERWASP_SEARCH_CASES says how many queries (default: a few thousand), PAPERWASP_SEED which.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from tempfile import TemporaryDirectory

from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import DocumentReader
from paperwasp.document.operations import Operation, Put, Remove
from paperwasp.schema import parse_schemas
from paperwasp.search.operators.item import Item
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.chance import SEED
from tests.content.nodes import TestNode, started
from tests.search.naive_matching import matches
from tests.search.naive_search import Document, Domain, random_domain, random_query
from tests.search.queries import query_of

CASES = int(os.environ.get("PAPERWASP_SEARCH_CASES", "3000"))
QUERIES = 100
"""Of each schema."""


def test_queries_match_what_they_say() -> None:
    print(f"seed {SEED}")  # noqa: T201
    for round_ in range(CASES // QUERIES):
        compare(random.Random(SEED + round_), f"seed {SEED}, round {round_}")


def compare(rng: random.Random, which: str) -> None:
    domain = random_domain(rng)
    found = parse_schemas({"schemas/thing.sd": domain.declaration})
    assert not [f for f in found.findings if f.level == "ERROR"], (which, domain.declaration, found.findings)
    reader = DocumentReader(found.schemas["thing"].document)
    documents: dict[str, Document] = {}
    operations: list[Operation] = []
    for _ in range(rng.randint(1, 120)):
        name = str(rng.randrange(80))
        id_ = DocumentId("n", "thing", name)
        if rng.random() < 0.1:
            documents.pop(name, None)
            operations.append(Remove(id_))
        else:
            documents[name] = domain.document(rng)
            operations.append(Put(id_, reader.read_put(documents[name], id_.text)))
    batch = rng.choice((5, 30, 1000))
    with TemporaryDirectory() as directory, started(Path(directory), dict(found.schemas)) as node:
        for start in range(0, len(operations), batch):
            node.apply(*operations[start : start + batch])
        profiles = ServedSchemas()
        for _ in range(QUERIES):
            compare_one(node, random_query(rng, domain), documents, domain, profiles, which)


def compare_one(
    node: TestNode, query: Item, documents: dict[str, Document], domain: Domain, profiles: ServedSchemas, which: str
) -> None:
    expected = {name for name, document in documents.items() if matches(query, document, domain)}
    request = query_of(query, hits=len(documents) + 1)
    try:
        answer = search(node.node.reader.view(), request, profiles)
    except Exception as error:
        raise AssertionError(f"{which}: {query.to_yql()}: {error!r}\n{domain.declaration}") from error
    found = {hit.document_id.rsplit(":", 1)[1] for hit in answer.hits}
    wrong = sorted(found ^ expected)
    shown = [f"{name}: {'matched' if name in found else 'missed'} {documents.get(name)}" for name in wrong[:3]]
    assert not wrong, f"{which}: {query.to_yql()}\n{query}\n" + "\n".join(shown) + f"\n{domain.declaration}"
    assert answer.total_count == len(expected)
