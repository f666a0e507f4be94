"""Grouping statements of people who mean harm: each is answered, and what is refused is refused with code 4 and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests import web
from tests.service.in_process import Deployed, deployed_service
from tests.service.query_scripts import deploy_and_feed
from tests.service.test_grouping_scripts import PURCHASES

COUNT = "each(output(count()))"
FROM_YQL = "Could not create query from YQL: "
NO_CONTINUATION = "is not a continuation: "
REFUSED = {
    "deep lists": ("all(" * 2000 + "output(count())" + ")" * 2000, "Operations are nested deeper than 30 levels"),
    "deep groups": (
        "all(" + "group(customer) each(" * 40 + "output(count())" + ")" * 41,
        "Operations are nested deeper than 30 levels",
    ),
    "deep parentheses": (f"all(group({'(' * 5000}price{')' * 5000}) {COUNT})", "Nested deeper than 60 levels"),
    "deep functions": (f"all(group({'md5(' * 5000}price{', 8)' * 5000}) {COUNT})", "Nested deeper than 60 levels"),
    "deep predicates": (
        f'all(group(customer) filter({"not " * 5000}regex("a", customer)) {COUNT})',
        "Nested deeper than 60 levels",
    ),
    "many arguments": (
        f"all(group(add({','.join(['price'] * 20001)})) {COUNT})",
        "More than 20000 functions and values",
    ),
    "a long statement": (
        f'all(group("{"x" * 300_000}") {COUNT})',
        "at most 262144",
    ),
    "many groups": (
        "all(" + "".join(f"all(group(price+{n}) {COUNT} as(a{n}))" for n in range(1001)) + ")",
        "The theoretical total number of groups and summaries in grouping query exceeds 'grouping.globalMaxGroups'",
    ),
    "more groups than numbers": (
        f"all(group(customer) max(99999999999999999999) {COUNT})",
        "For input string",
    ),
    "a string without an end": (f'all(group("{"x" * 1000}) {COUNT})', "Lexical error at line 1, column 11."),
    "a character of no language": (f"all(group(cust\0omer) {COUNT})", "Lexical error at line 1, column 15."),
    "comments without an end": (f"all(group(customer) {'/*' * 10_000} {COUNT})", "Encountered"),
    "bytes of no width": (f"all(group(md5(customer, 0)) {COUNT})", "md5 requires a number of bits between 1 and 128"),
    "a continuation that ends early": (f"{{continuations: ['BG']}}all(group(customer) {COUNT})", NO_CONTINUATION),
    "a continuation of other letters": (f"{{continuations: ['BGZ']}}all(group(customer) {COUNT})", NO_CONTINUATION),
    "a continuation of another kind": (f"{{continuations: [{{}}]}}all(group(customer) {COUNT})", ""),
}
"""What it is → a statement, and what the error says."""
ANSWERED = {
    "many outputs": f"all(output({','.join(f'sum(price+{n})' for n in range(500))}))",
    "many statements": " | ".join(["all(output(count()))"] * 500),
    "many continuations": f"{{continuations: [{','.join(repr('BGAAABEBCA') for _ in range(5000))}]}}"
    f"all(group(customer) max(1) {COUNT})",
    "a page behind the last": f"{{continuations: ['BGAAABEHPPPPPPPBC']}}all(group(customer) max(1) {COUNT})",
    "the largest precision": f"all(group(customer) precision(2147483647) {COUNT})",
    "a pattern that goes back and forth": f'all(group(item) filter(regex("(.*)*x(.*)*y(a|a)*", item)) {COUNT})',
    "a division by nothing": f"all(group(price / 0 + price % 0) {COUNT})",
    "no width": f"all(group(fixedwidth(price, 0)) {COUNT})",
    "a sum that does not fit": "all(output(sum(price * 9223372036854775807)))",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed_service(tmp_path_factory.mktemp("hostile")) as service:
        deploy_and_feed(service, PURCHASES)
        yield service


def ask(service: Deployed, statement: str, **more: str) -> tuple[int, dict[str, Any]]:
    body = {"yql": f"select * from purchase where true limit 0 | {statement}", "timeout": "20s", **more}
    answer = web.post(f"{service.url}/search/", json=body, timeout=30)
    return answer.status_code, answer.json()["root"]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(service: Deployed, name: str) -> None:
    statement, said = REFUSED[name]
    status, root = ask(service, statement)
    (error,) = root["errors"]
    assert (status, error["code"]) == (400, 4) and said in error["message"], error
    assert len(error["message"]) < 20_000 or statement in error["message"]


@pytest.mark.parametrize("name", ANSWERED)
def test_answered(service: Deployed, name: str) -> None:
    status, root = ask(service, ANSWERED[name])
    assert status == 200 and "errors" not in root, root
    assert root["children"][0]["id"] == "group:root:0"


def test_a_function_that_waits_is_ended(service: Deployed) -> None:
    status, root = ask(service, f"all(group(debugwait(customer, 100, false)) {COUNT})", timeout="500ms")
    (error,) = root["errors"]
    assert (status, error["code"]) == (504, 12)
