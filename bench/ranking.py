"""Ranking by what has to be worked out for every document: in process, CPU time of one thread beside NumPy's.

What matching costs is taken off: the same query is timed with a profile that ranks by nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench import models
from bench.ranking_node import beyond_matching, bound_row, least_seconds, node_of, ratio_row
from bench.report import Report, Row
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.schema import parse_schemas
from paperwasp.search.features.compile import compile_profiles
from paperwasp.search.operators.boolean import OrItem, TrueItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.word import WordItem
from paperwasp.search.query import Match, Query, Rank
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas

MOST_SCALAR_NS: Final = 8.0
MOST_DOT_RATIO: Final = 1.2
MOST_MAXSIM_RATIO: Final = 1 / 3
MOST_FIELD_MATCH_US: Final = 3.0
MOST_DEPLOY_SECONDS: Final = 0.5
SCALAR_SCHEMA: Final = """
schema row { document row {
    field a type float { indexing: attribute }
    field b type int { indexing: attribute }
    field c type double { indexing: attribute } }
    rank-profile nothing { first-phase { expression: 0 } }
    rank-profile twelve { first-phase { expression {
        0.3 * attribute(a) + 0.2 * log(1 + attribute(b)) - 0.1 * attribute(c) * attribute(a)
        + if (attribute(b) > 500, attribute(c), 0.5) / (1 + attribute(a)) } } } }
"""
DOT_SCHEMA: Final = """
schema row { document row { field v type tensor<float>(x[128]) { indexing: attribute } }
    rank-profile nothing { first-phase { expression: 0 } }
    rank-profile dot { inputs { query(q) tensor<float>(x[128]) }
        first-phase {
            expression: sum(query(q) * attribute(v))
        } } }
"""
MAXSIM_SCHEMA: Final = """
schema row { document row {
    field f type tensor<float>(t{},x[128]) { indexing: attribute }
    field bits type tensor<int8>(t{},x[16]) { indexing: attribute } }
    rank-profile nothing { first-phase { expression: 0 } second-phase {
        expression: 1
        rerank-count: 1000
    } }
    rank-profile floats { inputs { query(q) tensor<float>(s{},x[128]) }
        first-phase { expression: 0 }
        second-phase { rerank-count: 1000
            expression: sum(reduce(sum(query(q) * attribute(f), x), max, t), s) } }
    rank-profile bits { inputs { query(q) tensor<float>(s{},x[128]) }
        first-phase { expression: 0 }
        second-phase { rerank-count: 1000
            expression: sum(reduce(sum(query(q) * unpack_bits(attribute(bits)), x), max, t), s) } } }
"""
TEXT_SCHEMA: Final = """
schema row { document row {
    field text type string {
        indexing: index
        index: enable-bm25
    } }
    rank-profile nothing { first-phase { expression: 0 } }
    rank-profile match { first-phase { expression: fieldMatch(text) } } }
"""


@dataclass(frozen=True)
class Options:
    scalar_documents: int = 1_000_000
    dot_documents: int = 100_000
    text_documents: int = 10_000
    functions_count: int = 200
    repeats: int = 9


def run(report: Report, options: Options) -> None:
    """One row for each kind of ranking."""
    for work in (_scalar, _dot, _maxsim, _field_match, _deploy, _forest, _network):
        try:
            work(report, options)
        except Exception as error:  # the others still count
            report.fail(f"ranking, {work.__name__.strip('_')}: {type(error).__name__}: {error}")


def _scalar(report: Report, options: Options) -> None:
    count = options.scalar_documents
    values = np.random.default_rng(1)
    a, b, c = values.random(count, np.float32), values.integers(0, 1000, count), values.random(count)

    def fields(number: int) -> Mapping[str, Any]:
        return {"a": float(a[number]), "b": int(b[number]), "c": float(c[number])}

    def by_numpy() -> NDArray[np.float64]:
        wide = a.astype(np.float64)
        given = 0.3 * wide + 0.2 * np.log(1 + b) - 0.1 * c * wide + np.where(b > 500, c, 0.5) / (1 + wide)
        best: NDArray[np.float64] = np.partition(given, count - 10)
        return best

    with node_of(SCALAR_SCHEMA, fields, count) as node:
        beyond = beyond_matching(node, Query(Match(TrueItem()), Rank("twelve")), options.repeats)
    numpy_seconds = least_seconds(by_numpy, options.repeats)
    ours, theirs = beyond / count * 1e9, numpy_seconds / count * 1e9
    report.add(
        Row(
            f"first phase of 12 operations, {count:,} matches",
            f"{ours:.1f} ns a document",
            f"NumPy {theirs:.1f} ns",
            f"{ours / theirs:.2f} of NumPy",
            f"≤ {MOST_SCALAR_NS:g} ns",
            ours <= MOST_SCALAR_NS,
        )
    )


def _dot(report: Report, options: Options) -> None:
    count = options.dot_documents
    type_ = TensorType.parse("tensor<float>(x[128])")
    cells = np.random.default_rng(2).standard_normal((count, 128), np.float32)
    query = np.random.default_rng(3).standard_normal(128, np.float32)
    request = Query(Match(TrueItem()), Rank("dot", {"q": Tensor(type_, ((),), query[None, :])}))
    with node_of(DOT_SCHEMA, lambda number: {"v": Tensor(type_, ((),), cells[number : number + 1])}, count) as node:
        ours = beyond_matching(node, request, options.repeats)
    theirs = least_seconds(lambda: cells @ query, options.repeats)
    report.add(ratio_row(f"dot product of 128 floats, {count:,} documents", ours, theirs, MOST_DOT_RATIO, "NumPy"))


def _maxsim(report: Report, options: Options) -> None:
    count, query_tokens, tokens = 1000, 32, 100
    of_floats, of_bits = TensorType.parse("tensor<float>(t{},x[128])"), TensorType.parse("tensor<int8>(t{},x[16])")
    of_query = TensorType.parse("tensor<float>(s{},x[128])")
    values = np.random.default_rng(4)
    floats = values.standard_normal((count, tokens, 128), np.float32)
    bits = values.integers(-128, 128, (count, tokens, 16)).astype(np.int8)
    query = values.standard_normal((query_tokens, 128), np.float32)
    labels = tuple((str(token),) for token in range(tokens))
    inputs = {"q": Tensor(of_query, labels[:query_tokens], query)}

    def fields(number: int) -> Mapping[str, Any]:
        return {"f": Tensor(of_floats, labels, floats[number]), "bits": Tensor(of_bits, labels, bits[number])}

    def loop_floats() -> list[float]:
        return [float((query @ one.T).max(axis=1).sum()) for one in floats]

    def loop_bits() -> list[float]:
        unpacked = (np.unpackbits(one.view(np.uint8), axis=1).astype(np.float32) for one in bits)
        return [float((query @ one.T).max(axis=1).sum()) for one in unpacked]

    with node_of(MAXSIM_SCHEMA, fields, count) as node:
        for profile, loop in (("floats", loop_floats), ("bits", loop_bits)):
            request = Query(Match(TrueItem()), Rank(profile, inputs))
            ours, theirs = beyond_matching(node, request, options.repeats), least_seconds(loop, options.repeats)
            work = f"MaxSim of {query_tokens} by {tokens} tokens of 128 {profile}, {count:,} documents"
            report.add(ratio_row(work, ours, theirs, MOST_MAXSIM_RATIO, "NumPy, a document at a time"))
    read_gb = floats.nbytes / 1e9
    copied = least_seconds(lambda: floats.sum(dtype=np.float32), options.repeats)
    report.remark(f"MaxSim: to read its {read_gb:.2f} GB of floats alone takes {copied * 1000:.1f} ms (NumPy's sum)")


def _field_match(report: Report, options: Options) -> None:
    count, words = options.text_documents, [f"w{number}" for number in range(300)]
    values = random.Random(5)
    texts = [" ".join(values.choices(words, k=60)) for _ in range(count)]
    terms: tuple[Item, ...] = tuple(WordItem("text", word) for word in words[:4])
    with node_of(TEXT_SCHEMA, lambda number: {"text": texts[number]}, count) as node:
        request = Query(Match(OrItem(terms)), Rank("match"))
        matched = search(node.reader.view(), request, ServedSchemas()).total_count
        micros = beyond_matching(node, request, options.repeats) / matched * 1e6
    work = f"fieldMatch of 4 terms, {matched:,} documents of 60 tokens, each"
    report.add(bound_row(work, micros, MOST_FIELD_MATCH_US, "µs"))


def _deploy(report: Report, options: Options) -> None:
    inner = [f"f{n - 1}(x)" if n % 10 else "bm25(t)" for n in range(options.functions_count)]
    functions = "\n".join(
        f"function f{n}(x) {{ expression: x * {n} + log(1 + attribute(a)) + {called} }}"
        for n, called in enumerate(inner)
    )
    total = " + ".join(f"f{n}(attribute(b))" for n in range(9, options.functions_count, 10))
    schema = f"""
schema row {{ document row {{
    field a type float {{ indexing: attribute }}
    field b type int {{ indexing: attribute }}
    field t type string {{
        indexing: index
        index: enable-bm25
    }} }}
    rank-profile many {{ {functions}
        first-phase {{ expression: {total} }} }} }}
"""
    seconds = least_seconds(
        lambda: compile_profiles(parse_schemas({"schemas/row.sd": schema}).schemas["row"]), options.repeats
    )
    work = f"a rank profile of {options.functions_count} functions, read and compiled"
    report.add(bound_row(work, seconds, MOST_DEPLOY_SECONDS, "s"))


def _forest(report: Report, options: Options) -> None:
    models.forest(report, options.repeats)


def _network(report: Report, options: Options) -> None:
    models.network(report, options.repeats // 3)
