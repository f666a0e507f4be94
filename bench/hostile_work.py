"""Queries and visits of few bytes whose work is large: expressions on tensors, groupings, words, patterns."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator
from typing import Any, Final

from bench.attack import WHERE, Attack, query

_ALL: Final = {"yql": f"{WHERE}true", "timeout": "2s"}
_CELLS: Final = "tensor(a[500],b[500])(a*b+attribute(number))"
EXPRESSIONS: Final = {
    "an outer product of 4,000,000 cells": "reduce(tensor(a[2000],b[2000])(a*b+attribute(number)),sum)",
    "a matrix product": f"sum(matmul({_CELLS},tensor(b[500],c[500])(b*c+attribute(number)),b))",
    "a matrix product that is joined first": f"sum(matmul({_CELLS},tensor(a[500],b[500])(a+b),b))",
    "random tensors": "reduce(random(4000000,a[4000000])*attribute(number),sum)",
    "generated random numbers": "reduce(tensor(a[4000000])(random(a)*attribute(number)),sum)",
    "constants to be folded": "reduce(tensor(a[1000],b[1000])(sin(a)*cos(b))*tensor(b[1000],c[1000])(tanh(b*c)),sum)",
    "a median of 4,000,000 cells": "reduce(tensor(a[2000],b[2000])(sin(a*b)+attribute(number)),median)",
    "a soft maximum": "sum(map(tensor(a[2000],b[2000])(a*b+attribute(number)),f(x)(log(x)*exp(x))))",
}


def attacks() -> Iterator[Attack]:
    """One of each kind."""
    for name, expression in EXPRESSIONS.items():
        yield query(f"{name} as first phase", {**_ALL, "ranking.firstPhase.expression": expression}, squeeze=False)
    outer = EXPRESSIONS["an outer product of 4,000,000 cells"]
    for phase in ("secondPhase", "globalPhase"):
        content = {**_ALL, f"ranking.{phase}.expression": outer}
        yield query(f"an outer product as {phase}", content, squeeze=False)
    for profile in ("outer_product", "matrix_product", "outer_features"):
        yield query(f"the deployed profile {profile}", {**_ALL, "ranking": profile}, squeeze=False)
    yield from _groupings()
    yield from _matching()


def _groupings() -> Iterator[Attack]:
    def grouping(name: str, text: str) -> Attack:
        return query(name, {"yql": f"{WHERE}true limit 0 | {text}", "timeout": "5s"}, squeeze=False)

    one = "all(group(number) each(output(count())))"
    yield grouping("1,000 groupings", " | ".join([one] * 1000))
    hundred = ",".join(f"{n / 100:g}" for n in range(100))
    yield grouping("100 quantiles", f"all(group(number) each(output(quantiles([{hundred}],numbers))))")
    each = ",".join(f"quantiles([{n / 100:g}],numbers) as(q{n})" for n in range(100))
    yield grouping("100 outputs of a quantile", f"all(group(number) each(output({each})))")
    outputs = ",".join(f"sum(number+{n}) as(s{n})" for n in range(3000))
    numbers, names = (",".join([name] * 9000) for name in ("number", "name"))
    yield grouping("a grouping by a sum of 9,000 arguments", f"all(group(add({numbers})) each(output(count())))")
    yield grouping("a grouping by a text of 9,000 arguments", f"all(group(cat({names})) each(output(count())))")
    pages = ",".join(["'BGAAABEBCBC'"] * 60_000)
    yield grouping("60,000 continuations", f"{{'continuations':[{pages}]}} {one}")
    yield grouping("3,000 outputs", f"all(group(number) each(output({outputs})))")


def _matching() -> Iterator[Attack]:
    def select(name: str, content: dict[str, Any]) -> Attack:
        return query(name, {"timeout": "5s", **content}, squeeze=False)

    words = ",".join(f'"w{n % 1000}"' for n in range(3000))
    yield select("near of 3,000 words", {"yql": f"{WHERE}text contains near({words})"})
    phrase = " ".join(f"w{n}" for n in range(20_000))
    yield select("a phrase of 20,000 words", {"query": phrase, "type": "phrase"})
    forms = ",".join(f'"w{n}":1.0' for n in range(10_000))
    yield select("10,000 alternatives of a word", {"yql": f"{WHERE}text contains alternatives({{{forms}}})"})
    yield select("onear of 3,000 words", {"yql": f"{WHERE}text contains onear({words})"})
    any_word = " or ".join(f'text contains "w{n}"' for n in range(3000))
    yield select("dynamic teasers of 3,000 words", {"yql": f"{WHERE}{any_word}", "hits": 400})
    for field in ("text", "name"):
        patterns = " or ".join(f'{field} matches ".*{n}[a-y]+z?{n}"' for n in range(1000))
        yield select(f"1,000 regular expressions in {field}", {"yql": f"{WHERE}{patterns}"})
    items = [{"contains": ["text", f"w{n}"]} for n in range(3000)]
    yield select("select as JSON with 3,000 items", {"select": {"where": {"or": items}}})
    keys = ",".join(f'"{n}":1' for n in range(80_000))
    yield select("a weightedSet of 80,000 keys", {"yql": f"{WHERE}weightedSet(numbers, {{{keys}}})"})
    patterns = " or ".join(f'item.text =~ "(w{n}.*)+x{n}"' for n in range(100))
    yield Attack(
        "a visit's selection of 100 regular expressions",
        "GET",
        "/document/v1/?" + urllib.parse.urlencode({"cluster": "items", "selection": patterns, "timeout": "5s"}),
    )


def documents() -> Iterator[tuple[int, bytes]]:
    """What these attacks work on: number and body of each document."""
    for number in range(2000):
        words = [f"w{(number * 7 + n * n) % 3000}" for n in range(150)]
        fields = {
            "title": "much work", "text": " ".join(words), "name": f"name {number} of many", "number": number % 500,
            "numbers": [number * 31 % 4001, number, number + 1],
        }  # fmt: skip
        yield number, json.dumps({"fields": fields}).encode()
