"""Schemas at random and damaged ones: whatever comes, only InvalidSchemas comes out, and soon.

PAPERWASP_FUZZ says how many; PAPERWASP_SEED where chance starts.
"""

from __future__ import annotations

import os
import random
import re
import time
from pathlib import Path

import pytest

from paperwasp.schema import InvalidSchemas, parse_schemas
from paperwasp.schema.indexing_language import KEYWORDS
from tests.chance import SEED
from tests.schema.schema_generator import Generator

COUNT = int(os.environ.get("PAPERWASP_FUZZ", "2000"))
SECONDS = 10.0
"""Of processor time, so that a busy machine makes no schema slow."""

OTHER = """
schema other {
    document other {
        struct person { field name type string {} }
        field name type string { indexing: attribute }
        field loc type position { indexing: attribute }
    }
    rank-profile first { first-phase { expression: 1 } }
}
"""
REAL = [text for path in sorted((Path(__file__).parent / "scripts").glob("model_*.txt"))
        for case in path.read_text().split("====\n")[1:]
        if not (text := case.partition("---\n")[0]).startswith("###")]  # fmt: skip
PIECES = re.compile(r"[\w-]+|\s+|.")


def check(text: str, seed: object) -> bool:
    """Whether the schema in `text` is valid; fails on anything but an answer within its time."""
    files = {"schemas/schema.sd": text, "schemas/other.sd": OTHER, "schemas/e.expression": " 1 + 1"}
    started = time.thread_time()
    try:
        parse_schemas(files)
        return True
    except InvalidSchemas as error:
        assert error.findings and all(each.message for each in error.findings)
        return False
    except BaseException as error:
        pytest.fail(f"seed {seed}: {error!r} for\n{text}")
    finally:
        assert time.thread_time() - started < SECONDS, f"seed {seed}: too slow for\n{text}"


def test_schemas_written_by_the_grammar() -> None:
    for seed in range(SEED, SEED + COUNT):
        check(Generator(random.Random(seed)).schema(), seed)


def test_damaged_schemas() -> None:
    for seed in range(SEED, SEED + COUNT):
        chance = random.Random(seed)
        pieces = PIECES.findall(chance.choice(REAL))
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(pieces))
            more = [chance.choice(pieces) for _ in range(chance.randrange(3))]
            pieces[at : at + chance.randrange(3)] = more
            pieces = pieces or ["x"]
        check("".join(pieces), seed)


def test_indexing_scripts_at_random() -> None:
    words = [*KEYWORDS, "a", "b", "title", "1", "2.5", "'x'", *"|{}();:.+-*/%<>", "||", "==", "else", "case", "default"]
    for seed in range(SEED, SEED + COUNT):
        chance = random.Random(seed)
        script = " ".join(chance.choice(words) for _ in range(chance.randrange(12)))
        check(f"schema schema {{ document {{ field a type string {{ indexing {{ {script} }} }} }} }}", seed)
