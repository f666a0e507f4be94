"""A short run of `tools.fuzz` against a service, and what it finds wrong."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from paperwasp.http.messages import Response
from tests.chance import SEED
from tests.service.running import running_service
from tools.fuzz import values
from tools.fuzz.attack import Attack, problem_of
from tools.fuzz.client import Draft
from tools.fuzz.drafts import Drafts
from tools.fuzz.seeds import load_seeds
from tools.fuzz.target import Target
from tools.openapi.described import described

REQUESTS = 3000


@pytest.mark.crash
def test_no_request_ends_in_a_defect(tmp_path: Path) -> None:
    """The same requests in every run, unless PAPERWASP_SEED says otherwise; `python -m tools.fuzz` sends more."""
    seeds = load_seeds()
    with running_service(tmp_path / "data", "--allow-python-components") as service:
        with closing(Target(service, seeds)) as target:
            report = Attack(target, seeds, SEED, tmp_path).run(REQUESTS)
        assert service.stop() == 0
    assert report.failures == [], "\n".join(report.lines())
    assert report.requests == REQUESTS and report.statuses[200] > REQUESTS / 5
    assert len(report.operations) > 40


def test_every_operation_is_asked_for() -> None:
    """Some are drawn once in ten thousand times."""
    described_ids = {
        each["operationId"] for port in ("container", "configserver") for *_, each in described(port).operations()
    }
    drafts, asked = Drafts(random.Random(SEED), load_seeds()), set[str]()
    for _ in range(300_000):
        asked.add(drafts.next().operation)
        if described_ids <= asked:
            break
    assert described_ids <= asked, SEED


def draft(path: str = "/search/") -> Draft:
    return Draft("container", "GET", path)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Response(200, b'{"root":{"id":"toplevel","relevance":1.0,"fields":{"totalCount":0}}}'), ""),
        (Response(500, b'{"root":{"id":"toplevel","relevance":1.0,"fields":{"totalCount":0}}}'), "500"),
        (Response(503, b'{"message":"No application is active yet: deploy one"}'), ""),
        (Response(503, b'{"message":"it broke"}'), "503"),
        (Response(504, b'{"root":{"id":"toplevel","relevance":1.0,"fields":{"totalCount":0}},"x":"Timed out"}'), "'x'"),
        (Response(200, b'{"root":{"id":"toplevel","relevance":1.0}}'), "'fields' is a required property"),
        (Response(200, b'{"root":'), "cannot be read"),
        (Response(200, b'{"root":{"errors":[{"code":5,"message":"Failed: OverflowError"}]}}'), "OverflowError"),
        (Response(299, b"{}"), "no answer 299 is described"),
        (Response(200, b"{}", "text/strange"), "no text/strange is described"),
    ],
)
def test_what_is_wrong_with_an_answer(answer: Response, said: str) -> None:
    found = problem_of(draft(), answer)
    assert said in found and bool(said) == bool(found)


def test_a_request_can_be_sent_again(tmp_path: Path) -> None:
    sent = Draft("container", "POST", "/search/?a='b'", (("X-Y", "z z"),), b"\x00'")
    line = sent.curl("http://h:1", tmp_path, 7)
    assert (tmp_path / "body7").read_bytes() == b"\x00'"
    assert "-X POST 'http://h:1/search/?a='\"'\"'b'\"'\"'' -H 'X-Y: z z'" in line


def test_values_are_inside_and_beside_a_schema() -> None:
    chance = random.Random(SEED)
    schema = {"type": "integer", "minimum": 0, "maximum": 9}
    assert {values.of_schema(schema, chance) for _ in range(200)} >= {"0", "1", "9"}
    assert {values.beside_schema(schema, chance) for _ in range(500)} >= {"-1", "10", "0.5"}
    assert values.of_schema({"type": "string", "enum": ["a"]}, chance) == "a"
