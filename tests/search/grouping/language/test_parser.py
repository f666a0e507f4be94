"""Statements are read by the grammar and written as Vespa writes them; errors are in its words, with the place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.errors import LanguageError, PaperwaspError
from paperwasp.search.grouping.language import UNLIMITED, check_levels, expression_text, operation_text, parse_grouping
from paperwasp.search.grouping.language.operation import ALL
from paperwasp.search.grouping.request import Bucket, Expression, Infinite

WORDS = """acos acosh accuracy add alias all and argmax argmin array as at asin asinh atan atanh attribute avg bucket
cat cbrt cos cosh count debugwait div docidnsspecific each exp filter first fixedwidth floor geo_distance group hint
hypot in istrue keep km log log1p log10 math max md5 miles min mod mul neg not normalizesubject now or order output pow
precision predefined quantiles range regex relevance reverse sin sinh size sort interpolatedlookup sqrt stddev strcat
strlen sub sum summary tan tanh time date dayofmonth dayofweek dayofyear hourofday minuteofhour monthofyear
secondofminute year todouble tolong toraw tostring true false uca where x xor xorbit y zcurve"""


def written(text: str, parameters: dict[str, str] | None = None) -> str:
    """How Vespa writes the only statement of a text."""
    (operation,) = parse_grouping(text, None if parameters is None else parameters.get)
    check_levels(operation)
    return operation_text(operation)


def grouped(text: str) -> Expression:
    (operation,) = parse_grouping(f"all(group({text}))")
    assert operation.group_by is not None
    return operation.group_by


def error_of(text: str, parameters: dict[str, str] | None = None) -> str:
    with pytest.raises(LanguageError) as caught:
        written(text, parameters)
    return caught.value.message


@pytest.mark.parametrize("word", WORDS.split())
def test_no_word_is_reserved(word: str) -> None:
    assert grouped(word) == Expression("attribute", (word,))
    assert written(f"all(group({word}) each(output(sum({word}) as({word}))) as({word}))")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1+2", "add(1, 2)"),
        ("a - b", "sub(a, b)"),
        ("a*b", "mul(a, b)"),
        ("a / b", "div(a, b)"),
        ("a % b", "mod(a, b)"),
        ("1+2+3", "add(add(1, 2), 3)"),
        ("1+2-3", "add(1, sub(2, 3))"),
        ("1-2+3", "add(sub(1, 2), 3)"),
        ("1/2%3*4", "div(1, mod(2, mul(3, 4)))"),
        ("1*2%3/4", "div(mod(mul(1, 2), 3), 4)"),
        ("(1+2)*3", "mul(add(1, 2), 3)"),
        ("-a", "neg(a)"),
        ("-a+b", "neg(add(a, b))"),
        ("+a", "a"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775807", "9223372036854775807"),
        ("010", "10"),
        ("1.50", "1.5"),
        ("08.5f", "8.5"),
        ("'a\\n\"b\\u00e9'", '"a\\n\\"b\\u00e9"'),
        ('"\\\'"', '"\'"'),
        ("attribute(a.b)", "attribute(a.b)"),
        ("a.b.c", "a.b.c"),
        ("time", "time"),
        ("time.year", "time.year"),
        ("time.year(t)", "time.year(t)"),
        ("math.pow(a, 2)", "math.pow(a, 2)"),
        ("zcurve.x(p)", "zcurve.x(p)"),
        ("array.at(a.b, 1 + i)", "array.at(a.b, add(1, i))"),
        ("interpolatedlookup(a, 0.25)", "interpolatedlookup(a, 0.25)"),
        ("m{k}", 'm{"k"}'),
        ('m.n{"a b"}.c.d', 'm.n{"a b"}.c.d'),
        ("m{attribute(k.l)}.c", "m{attribute(k.l)}.c"),
        ("m{attribute}", 'm{"attribute"}'),
        ("debugwait(a, 3, true)", "debugwait(a, 3.0, true)"),
        ("uca(a, sv)", 'uca(a, "sv")'),
        ("uca(a, 'sv', 'PRIMARY')", 'uca(a, "sv", "PRIMARY")'),
        ("fixedwidth(a, 21.34)", "fixedwidth(a, 21.34)"),
        ("md5(a, 64)", "md5(a, 64)"),
        ("max(a, b, c)", "max(a, b, c)"),
        ("strcat(a, '-', b)", 'strcat(a, "-", b)'),
        ("now() - t", "sub(now(), t)"),
        ("geo_distance(attribute(p), 1, 2.5).km", "geo_distance(attribute(p), 1, 2.5).km"),
        ("a /* b */ + // c\n 1 # d\n", "add(a, 1)"),
        ("10000000.0", "1.0E7"),
    ],
)
def test_expressions_are_written_as_vespa_writes_them(text: str, expected: str) -> None:
    expression = grouped(text)
    assert expression_text(expression) == expected
    assert expression_text(grouped(expected)) == expected


def test_each_function_is_read() -> None:
    arguments = {
        "count": "", "docidnsspecific": "", "now": "", "relevance": "", "attribute": "a", "summary": "a",
        "debugwait": "a, 1, true", "fixedwidth": "a, 1", "predefined": "a, bucket(1, 2)", "quantiles": "[0.5], a",
        "uca": "a, sv", "geo_distance": "attribute(a), 1, 2", "md5": "a, 1", "xorbit": "a, 1",
    }  # fmt: skip
    for name in sorted(ALL):
        two = arguments.get(name, "a, b")
        for given_arguments in (two, "a"):
            try:
                found = grouped(f"{name}({given_arguments}){'.km' if name == 'geo_distance' else ''}")
            except LanguageError:
                continue
            assert found.function in (name, f"{name}_function", f"{name}.km")
            break
        else:
            pytest.fail(name)


def test_buckets() -> None:
    found = grouped("predefined(a, bucket<-inf, 0], bucket(1, 2), bucket[3], bucket<4, inf>)")
    assert found.arguments[1:] == (
        Bucket(Infinite(is_negative=True), 1),
        Bucket(1, 2),
        Bucket(3, 4),
        Bucket(5, Infinite(is_negative=False)),
    )
    found = grouped("predefined(a, bucket('c'), bucket<d, e])")
    assert found.arguments[1:] == (Bucket("c", "c "), Bucket("d ", "e "))
    assert expression_text(found) == 'predefined(a, bucket["c", "c ">, bucket["d ", "e ">)'
    found = grouped("predefined(a, bucket({0, 2}, {0, 6}), bucket[{'k'}])")
    assert found.arguments[1:] == (Bucket(b"\0\2", b"\0\6"), Bucket(b"'k'", b"'k'\0"))
    assert grouped("predefined(a, bucket[0.5])").arguments[1] == Bucket(0.5, 0.5000000000000001)
    assert grouped("predefined(a, bucket[-1.5, -0.5>)").arguments[1] == Bucket(-1.5, -0.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bucket(1, 2.0)", "Bucket type mismatch, expected 'LongValue' got 'DoubleValue'."),
        ("bucket(1, '2')", "Bucket type mismatch, expected 'LongValue' got 'StringValue'."),
        ("bucket(1, 2), bucket(three, four)", "Bucket type mismatch, expected 'LongValue' got 'StringValue'."),
        ("bucket<-inf, inf>", "Bucket type mismatch, cannot both be infinity."),
        ("bucket(2, 1)", "Bucket to-value cannot be less than from-value."),
        ("bucket(b, a)", "Bucket to-value cannot be less than from-value."),
        (
            "bucket(3, 4), bucket(1, 2)",
            "Buckets must be monotonically increasing, got bucket[3, 4> before bucket[1, 2>.",
        ),
        (
            "bucket(u, inf), bucket(e, i)",
            'Buckets must be monotonically increasing, got bucket["u", inf> before bucket["e", "i">.',
        ),
        ("bucket({300}, {301})", 'Value out of range. Value:"300" Radix:10'),
    ],
)
def test_wrong_buckets(text: str, expected: str) -> None:
    assert error_of(f"all(group(predefined(foo, {text})))") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all(group(a)max(3) max(inf))", f"all(group(a) max({UNLIMITED}))"),
        ("all(group(a) alias(b, count()) each(output($b)))", "all(group(a) each(output(count())))"),
        ("all(group(a) order(-$b=sum(c)) each(output($b)))", "all(group(a) order(neg(sum(c))) each(output(sum(c))))"),
        ("all(group(a)) where(true)", "all(where(true) all(group(a)))"),
        ("all(where($query) hint(x) hint(x) accuracy(0.5) precision(3))", "all(hint(x) precision(3) where($query))"),
        ("each() as('my label')", 'each() as("my label")'),
        ("all(output(count() as(n), sum(max(a, b))))", "all(output(count() as(n), sum(max(a, b))))"),
        (
            "all(group(a) keep(not (regex('b.*', c) or istrue(d)) and range(-1, 2.5, e)))",
            'all(group(a) filter(not (regex("b.*", c) or istrue(d)) and range(-1, 2.5, e, true, false)))',
        ),
        ("all(group(a) filter(in(a, b, 'c d')))", 'all(group(a) filter(in(a, "b", "c d")))'),
        ("all(output(quantiles([0.5, 1], a)))", "all(output(quantiles([0.5,1.0],a)))"),
        (" \n all( group( a ) )\t", "all(group(a))"),
    ],
)
def test_operations(text: str, expected: str) -> None:
    assert written(text) == expected


def test_aliases_have_scopes() -> None:
    assert error_of("all(each(alias(a, b)) each(output(sum($a))))") == "Unknown alias '$a'"
    inner = "all(alias(a, sum(b)) group(c))"
    assert "Encountered" in error_of(inner)  # group comes first
    assert written("all(alias(a, sum(b)) all(alias(a, max(b)) output($a)) all(output($a)))") == (
        "all(all(output(max(b))) all(output(sum(b))))"
    )


def test_parameters() -> None:
    given_values = {"p": 'a"b', "n": "7", "l": "x, 'y z'", "f": "-1.5", "e": "", "s": "one"}
    text = (
        "all(group(@s) filter(regex(@p, a) and in(a, b, @l) and range(@f, 2, a)) max(@n) each(output(count())) as(@p))"
    )
    assert written(text, given_values) == (
        'all(group("one") filter(regex("a\\"b", a) and in(a, "b", "x", "y z") and range(-1.5, 2, a, true, false)) '
        'max(7) each(output(count())) as("a\\"b"))'
    )
    assert error_of("all(group(a) max(@s))", given_values) == "Input 's' must be a number, but was 'one'"
    assert error_of("all(group(a) max(@x))", given_values) == "Input 'x' is not set"
    assert error_of("all(group(a) max(@x))") == (
        "Parameter '@x' cannot be resolved as no query properties are available"
    )
    assert error_of("all(group(a) filter(in(a, @e)))", given_values) == (
        "In predicate requires at least one argument, but none were provided"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("foo", 'Encountered " <IDENTIFIER> "foo"" at line 1, column 1.'),
        ("\n foo", 'Encountered " <IDENTIFIER> "foo"" at line 2, column 2.'),
        ("all (group(foo))", 'Encountered " <SPACE> " "" at line 1, column 4.'),
        ("all(group (foo))", 'Encountered " <SPACE> " "" at line 1, column 10.'),
        ("all() as(foo)", 'Encountered " "as" "as"" at line 1, column 7.'),
        ("all(group(foo.))", 'Encountered " ")" ")"" at line 1, column 15.'),
        ("all(output(min(a)) as(foo))", 'Encountered " "as" "as"" at line 1, column 20.'),
        ("all(output(count())))", 'Encountered " ")" ")"" at line 1, column 21.'),
        ("all(group(a)", 'Encountered "<EOF>" at line 1, column 13.'),
        ('all(group(my_map{attribute("a")}))', 'Encountered " <STRING> "\\"a\\""" at line 1, column 28.'),
        ("all(group(debugwait(artist, -3.3, true)))", 'Encountered " "-" "-"" at line 1, column 29.'),
        ("all(group(debugwait(artist, 3.3, lol)))", 'Encountered " <IDENTIFIER> "lol"" at line 1, column 34.'),
        ("all(group(predefined(foo, bucket<inf, -inf>)))", 'Encountered " "inf" "inf"" at line 1, column 34.'),
        ("all(group(predefined(foo, bucket(b, -inf))))", 'Encountered " "-inf" "-inf"" at line 1, column 37.'),
        ("all(group(a) filter(range(- 10, 10, foo)))", 'Encountered " <SPACE> " "" at line 1, column 28.'),
        ("all(group(a) filter(in(foo, sum(bar))))", 'Encountered " "(" "("" at line 1, column 32.'),
        ("all(group(nosuch(a)))", 'Encountered " "(" "("" at line 1, column 17.'),
        ("all(group(a?))", 'Lexical error at line 1, column 12.  Encountered: "?" (63), after : ""'),
        ("all(\ngroup\n(a))", 'Encountered " <SPACE> "\\n"" at line 2, column 6.'),
        ("all(group('a' 'b'))", 'Encountered " <STRING> "\\\'b\\\'"" at line 1, column 15.'),
        ("all(group(é))", 'Lexical error at line 1, column 11.  Encountered: "\\u00e9" (233), after : ""'),
        ("each(output(count()))", "Expression 'count()' not applicable for single hit."),
        ("all(output(a))", "Expression 'a' not applicable for single group."),
        ("all(group(a) each(output(sum(sum(b)))))", "Expression 'sum(b)' not applicable for single hit."),
        ("all(group(sum(sum(a))))", "Expression 'sum(sum(a))' not applicable for single hit."),
        ("each(all() each())", "Operation 'each()' can not operate on single hit."),
        ("each(group(foo) all() each())", "Operation 'each(group(foo) all() each())' can not group single hit."),
        ("each(max(3))", "Operation 'each(max(3))' can not apply max to single hit."),
        ("each(order(a))", "Operation 'each(order(a))' can not order single hit."),
        ("all(group(uca(a, b, foo)))", "Not a valid UCA strength: foo"),
        ("all(accuracy(1.5))", "Illegal accuracy '1.5'. Must be between 0 and 1."),
        ("all(group(md5(a, 129)))", "md5 requires a number of bits between 1 and 128, but got 129"),
        ("all(group(xorbit(a, 0)))", "xorbit requires a number of bits between 1 and 64, but got 0"),
        ("all(group(0x10))", 'For input string: "0x10"'),
        ("all(group(12L))", 'For input string: "12L"'),
        ("all(group(9223372036854775808))", 'For input string: "9223372036854775808"'),
        ("all(filter(in(sum(a), b)))", "In predicate cannot be used with an aggregator"),
    ],
)
def test_errors(text: str, expected: str) -> None:
    assert error_of(text).startswith(expected)


def test_an_error_marks_its_place() -> None:
    assert error_of("all(\n group(a?b))").endswith("At position:\n group(a?b))\n        ^")


def test_statements_are_separated() -> None:
    assert [operation.is_each for operation in parse_grouping("all();each(); all() where(true);each()")] == [
        False, True, False, True,
    ]  # fmt: skip
    assert parse_grouping(" \n") == []


def test_depth_and_size_are_bounded() -> None:
    depth = limits.grouping.EXPRESSION_DEPTH
    assert grouped("(" * (depth - 1) + "a" + ")" * (depth - 1)) == Expression("attribute", ("a",))
    assert "Nested deeper" in error_of(f"all(group({'(' * depth}a{')' * depth}))")
    assert "Nested deeper" in error_of(f"all(group(a) filter({'not ' * (depth + 1)}istrue(a)))")
    most = limits.grouping.OPERATION_DEPTH
    assert len(parse_grouping("all(" * most + ")" * most)[0].walk()) == most
    assert "Operations are nested deeper" in error_of("all(" * (most + 1) + ")" * (most + 1))
    doubling = " ".join(f"alias(a{n + 1}, add($a{n}, $a{n}))" for n in range(40))
    assert "More than" in error_of(f"all(alias(a0, b) {doubling} output(sum($a40)))")
    with pytest.raises(LanguageError):
        parse_grouping(" " * limits.grouping.STATEMENT_CHARACTERS + "all()")


SYMBOLS = "( ) , . ; $ = + - * / % { } [ ] < > inf -inf 1 2.5 'a' @p"
PIECES = sorted({*WORDS.split(), *SYMBOLS.split(), " "})


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        operations = parse_grouping(f"all({text})", {"p": "1"}.get)
    except PaperwaspError:
        return
    for operation in operations:
        assert operation_text(parse_grouping(operation_text(operation))[0]) == operation_text(operation)
