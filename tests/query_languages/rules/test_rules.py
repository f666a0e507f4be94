"""Semantic rules: golden scripts, and rules with whatever is in them.

Reading and evaluating them ends, and fails only by a message.
"""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.core.clock import OutOfTime, end_work_at
from paperwasp.errors import InvalidQuery, PaperwaspError
from paperwasp.query_languages.rules import Rewriting, RuleBases, load_rules, rewrite
from paperwasp.query_languages.rules.tree import described, item_of, leaves_of, root_of
from paperwasp.search.operators.boolean import AndItem, NotItem, OrItem, RankItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.yql_syntax import Annotations
from tests.query_languages.rules.rule_scripts import SCRIPTS, check_script


@pytest.mark.parametrize("name", sorted(path.stem for path in SCRIPTS.glob("*.txt")))
def test_script(name: str) -> None:
    check_script(name)


WORDS = st.sampled_from(["a", "b", "c", "d e", "e-f"])


def bases_of(rules: str) -> RuleBases:
    bases, findings = load_rules({"rules/main.sr": rules})
    assert [str(finding) for finding in findings] == []
    return bases


def errors_of(rules: str) -> list[str]:
    bases, findings = load_rules({"rules/main.sr": rules})
    assert not bases.by_name
    return [str(finding) for finding in findings]


def rewritten(rules: str, tree: Item, level: int = 0) -> Rewriting:
    found = rewrite(bases_of(rules).by_name["main"], tree, {}, trace_level=level)
    return replace(found, tree=found.tree.canonical())


def words(*texts: str) -> Item:
    items = tuple(WordItem("default", text) for text in texts)
    return items[0] if len(items) == 1 else AndItem(items)


def trees(depth: int = 2) -> st.SearchStrategy[Item]:
    leaf = st.builds(lambda word: WordItem("default", word), WORDS) | st.builds(
        lambda parts: PhraseItem("default", tuple(parts)), st.lists(st.sampled_from("abc"), min_size=2, max_size=3)
    )
    if not depth:
        return leaf
    children = st.lists(trees(depth - 1), min_size=2, max_size=3).map(tuple)
    made = [st.builds(kind, children) for kind in (AndItem, OrItem, NotItem, RankItem, WeakAndItem)]
    return st.one_of(leaf, *made)


def conditions() -> st.SearchStrategy[str]:
    simple = st.sampled_from(["a", "b", "c", "...", "[...]", "[x]", "r/[...]", "!a", "'v'", "parameter.p", '"a"'])
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(" ".join),
            st.tuples(inner, inner).map(lambda both: f"({both[0]}, {both[1]})"),
            inner.map(lambda one: f"({one})"),
        ),
        max_leaves=4,
    )


def productions() -> st.SearchStrategy[str]:
    sign = st.sampled_from(["", "", "+", "?", "$", "-", "=", "~"])
    word = st.sampled_from(["a", "b", "c", '"a b"', "label:c", "a!50", "<5"])
    return st.lists(st.tuples(sign, word).map("".join), max_size=3).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(conditions(), st.sampled_from(["->", "+>"]), productions()), min_size=1, max_size=4),
    trees(),
    st.sampled_from(["and", "or", "weakAnd"]),
)
def test_every_evaluation_ends(rules: list[tuple[str, str, str]], tree: Item, joined: str) -> None:
    text = "[x] :- a, b c;\n" + "".join(f"{' '.join(rule)};\n" for rule in rules)
    bases, findings = load_rules({"rules/main.sr": text})
    assert [str(finding) for finding in findings if "nested" not in finding.message] == []
    try:
        found = rewrite(bases.by_name["main"], tree, {"p": "v"}, joined)
    except InvalidQuery as error:
        assert "aborting" in error.message or "more than" in error.message or "at most" in error.message
        return
    assert described(root_of(found.tree.canonical()))
    if not found.fired:
        assert found.tree is tree


@settings(max_examples=200, deadline=None)
@given(trees())
def test_a_tree_that_nothing_is_done_to_stays_as_it_is(tree: Item) -> None:
    root = root_of(tree)
    assert item_of(root) == tree
    assert all(leaf.branch().children[leaf.place()] is leaf for leaf in leaves_of(root))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab[]().,;:-+>!=~'\"@#/$?*&<\n 1\u00e6", max_size=60))
def test_reading_ends_whatever_is_written(text: str) -> None:
    bases, findings = load_rules({"rules/main.sr": text})
    assert bases.by_name or findings
    for finding in findings:
        assert finding.position is not None


@pytest.mark.parametrize("opened", ["(", "!(", "a, (", "x/(", "l:("])
def test_deep_conditions_are_refused(opened: str) -> None:
    assert "nested deeper than" in errors_of(opened * 20_000 + "a" + ")" * 20_000 + " -> b;")[0]


def test_the_deepest_conditions_are_evaluated() -> None:
    levels = limits.RULE_DEPTH - 1
    rules = "r/l:(x, !z " * levels + "a" + ")" * levels + " -> b;"
    rewritten(rules, words(*"qqqqqqqqqqqqqqa"))
    chain = "".join(f"[c{n}] :- (x, [c{n + 1}]);\n" for n in range(levels)) + f"[c{levels}] :- a;\n[c0] -> b;"
    assert rewritten(chain, words("a")).tree == WordItem("default", "b")
    assert sys.getrecursionlimit() <= 1000


def test_conditions_that_refer_too_deep_are_refused() -> None:
    chain = "".join(f"[c{n}] :- [c{n + 1}];\n" for n in range(3 * limits.RULE_DEPTH))
    assert "refer to each other over" in errors_of(chain + f"[c{3 * limits.RULE_DEPTH}] :- a;")[0]


def test_a_doubling_of_terms_is_bounded() -> None:
    rules = "".join(f"w{n} -> {f'w{n + 1} ' * 10};\n" for n in range(8))
    with pytest.raises(InvalidQuery, match=r"steps|at most|aborting"):
        rewritten(rules, words("w0"))


def test_backtracking_is_bounded() -> None:
    with pytest.raises(InvalidQuery, match="takes more than 200000 steps"):
        rewritten("... ... ... ... ... z -> b;", words(*(["a"] * 60)))


def test_a_long_choice_is_looked_up() -> None:
    rules = "[stop] -> ;\n[stop] :- " + ", ".join(f"w{n}" for n in range(10_000)) + ";"
    found = rewritten(rules, words("w1", "x", "w9999"))
    assert found.tree == WordItem("default", "x")


def test_many_rules_cost_little_where_they_do_not_match() -> None:
    rules = "".join(f"w{n} -> x{n};\n" for n in range(5_000))
    assert rewritten(rules, words("w7", "q", "w4999")).tree == words("x7", "q", "x4999")


def test_the_trace_is_bounded() -> None:
    rules = "".join(f"w{n} -> x{n};\n" for n in range(2_000))
    assert len(rewritten(rules, words("a", "b"), level=3).trace) == limits.RULE_TRACE_MESSAGES


def test_a_query_without_words_is_left_alone() -> None:
    hidden = WordItem("default", "a", annotations=Annotations(filter=True))
    assert rewritten("... -> b;", hidden).tree is hidden


def test_too_many_statements_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RULE_STATEMENTS", 2)
    assert "at most 2" in errors_of("a -> b; b -> c; [d] :- e;")[0]


def test_inclusion_is_bounded() -> None:
    files = {f"rules/b{n}.sr": f"@include(b{n + 1})\n" for n in range(100)} | {"rules/b100.sr": "a -> b;"}
    _, findings = load_rules(files)
    assert any("include each other over" in finding.message for finding in findings)


def test_bad_names_are_told() -> None:
    bases = bases_of("a -> b;")
    with pytest.raises(PaperwaspError, match="Requested rule base 'x' does not exist"):
        bases.named("x")
    assert bases.named("") is None
    assert bases.named("main.sr") is bases.by_name["main"]


def test_rules_end_when_the_time_is_over() -> None:
    end_work_at(1)
    try:
        with pytest.raises(OutOfTime):
            rewritten("[a] :- a, b; [a] [a] -> c;", words(*("a" for _ in range(5000))))
    finally:
        end_work_at(0)
