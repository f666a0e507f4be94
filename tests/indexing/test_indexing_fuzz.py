"""Random scripts on random documents: they compile or say why not, they run or say why not, within their limits.

What runs gives values of its field's type: the content cluster takes them.
"""

from __future__ import annotations

from functools import partial

import orjson
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.document.json_format import DocumentReader
from paperwasp.document.types import check_of
from paperwasp.document.updates import Add, Assign, Calculate, FieldUpdate, Match, Take
from paperwasp.errors import InvalidInput, LanguageError
from paperwasp.indexing import check_scripts
from paperwasp.indexing import processor as processor_module
from paperwasp.indexing.scope import Run
from paperwasp.schema.indexing_language import KEYWORDS
from tests.indexing.indexing_scripts import ID, processor, schema_of

SINGLES = ("string", "int", "long", "double", "bool", "uri", "float", "byte", "position", "person")
TYPES = st.sampled_from(
    [*SINGLES, "array<string>", "array<int>", "weightedset<string>", "map<string,string>", "tensor(x{})"]
)
INPUTS = (
    "a b u n l f d t p s y texts numbers doubles places people weights counts words squares dense mixed s.name s.home.x"
)
WORDS = """
    7 3L 1.5 true _ this now random lowercase trim normalize tokenize flatten hash documentid get_language set_language
    to_int to_long to_double to_float to_byte to_string to_bool to_array to_wset to_pos to_epoch_second to_uri zcurve
    hexencode hexdecode base64encode base64decode exhex8encode binarize pack_bits clear_state index attribute summary
"""
LINES = """
    "text"
    split ","
    join ";"
    substring 1 3
    get_field name
    get_value "k"
    set_var v
    get_var v
    random 5
    chunk sentence
    to_tensor x
"""
SIMPLE = st.sampled_from(
    [*WORDS.split(), *map(str.strip, LINES.strip().splitlines()), *(f"input {name}" for name in INPUTS.split())]
)


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    return st.one_of(
        two.map(" | ".join),
        two.map(" . ".join),
        two.map(" || ".join),
        st.tuples(inner, st.sampled_from("+-*/%"), inner).map(" ".join),
        inner.map("({})".format),
        inner.map("for_each {{ {} }}".format),
        inner.map("guard {{ {}; }}".format),
        st.tuples(inner, inner, inner, inner).map(lambda p: f"if ({p[0]} < {p[1]}) {{ {p[2]}; }} else {{ {p[3]} }}"),
        two.map(lambda p: f'switch {{ case "x": {p[0]}; default: {p[1]}; }}'),
        two.map(lambda p: f"select_input {{ a: {p[0]}; texts: {p[1]}; }}"),
    )


SCRIPTS = st.tuples(
    st.recursive(SIMPLE, _combined, max_leaves=8), st.sampled_from(["", " | index", " | attribute", " | summary"])
).map("".join)
TEXTS = st.one_of(st.text(max_size=6), st.sampled_from(["a,b", "7", "2024-01-01T00:00:00Z", "N1;E2", "ff", "k"]))
INTS = st.integers(-(2**31), 2**31 - 1)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "a": TEXTS,
        "b": TEXTS,
        "u": TEXTS,
        "y": st.integers(-128, 127),
        "n": INTS,
        "l": st.integers(-(2**63), 2**63 - 1),
        "f": st.floats(width=32, allow_nan=False, allow_infinity=False),
        "d": st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["NaN", "Infinity"])),
        "t": st.booleans(),
        "p": st.fixed_dictionaries({"x": INTS, "y": INTS}),
        "s": st.fixed_dictionaries({}, optional={"name": TEXTS, "age": INTS}),
        "texts": st.lists(TEXTS, max_size=3),
        "numbers": st.lists(INTS, max_size=3),
        "doubles": st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3),
        "weights": st.dictionaries(TEXTS, INTS, max_size=3),
        "words": st.dictionaries(TEXTS, TEXTS, max_size=3),
        "squares": st.dictionaries(INTS.map(str), INTS, max_size=3),
        "dense": st.lists(st.floats(-9, 9, width=32), min_size=9, max_size=9),
    },
)


@settings(deadline=None, max_examples=1500, suppress_health_check=list(HealthCheck))
@given(TYPES, SCRIPTS, st.data())
def test_a_script_runs_or_says_why_not(type_: str, script: str, data: st.DataObject) -> None:
    try:
        schema = schema_of(type_, script)
    except InvalidInput as error:
        assert error.message
        return
    told = list(check_scripts(schema))
    if told:
        assert all(finding.level == "ERROR" and finding.position and finding.message for finding in told)
        return
    scripts = processor(schema)
    reader = DocumentReader(schema.document)
    try:
        values = reader.read_put(data.draw(DOCUMENTS))  # late: of nine scripts, eight are refused
    except InvalidInput:
        assume(False)
    check = check_of(schema.fields["out"].type)
    updates = [(FieldUpdate(name, Assign(value)),) for name, value in values.items()]
    updates += [(FieldUpdate(name, Assign(None)),) for name in values]
    updates += [(FieldUpdate(name, Take(tuple(value))),) for name, value in values.items() if type(value) is list]
    updates += [(FieldUpdate(name, Add(value)),) for name, value in values.items() if type(value) in (list, dict)]
    updates += [(FieldUpdate(name, Assign(7), (Match(0),)),) for name in ("numbers", "texts") if name in values]
    updates += [(FieldUpdate("n", Calculate("increment", 1)),)]
    for update in updates:
        if update[0].field in ("texts",) and update[0].path:
            continue
        try:
            found = scripts.update(ID, update)
            assert found[: len(update)] == update
        except InvalidInput as error:
            assert "Could not index field 'out'" in error.message
    try:
        made = scripts.derived(ID, values)
    except InvalidInput as error:
        assert "Could not index field 'out'" in error.message
        return
    assert made.keys() <= {"out"}
    assert all(map(check, made.values())), made


@settings(deadline=None, max_examples=1000, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.one_of(
            st.sampled_from([*KEYWORDS, *"|;{}().,+-", "a", "b", '"x"', "7", "07", "1.5", "-3", "2L"]),
            st.text(max_size=4),
        )
    )
)
def test_any_text_is_a_script_or_is_told_why_not(words: list[str]) -> None:
    text = " ".join(words).replace("\n", " ").replace("\r", " ")
    try:
        schema = schema_of("string", "input a | " + text.replace("{", "{{").replace("}", "}}"))
    except InvalidInput as error:
        assert error.message
        return
    for finding in check_scripts(schema):
        assert finding.level == "ERROR" and finding.message


def test_what_scripts_make_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = {"texts": ["x" * 1000] * 1000, "a": "y" * 1000}
    values = DocumentReader(schema_of("string", "input a | index").document).read_put(documents)
    monkeypatch.setattr(processor_module, "Run", partial(Run, characters_left=10_000, elements_left=1_500))
    text = processor(schema_of("array<string>", "input texts | for_each { input a . _ } | index"))
    with pytest.raises(InvalidInput, match="the scripts make more than"):
        text.derived(ID, values)
    elements = processor(schema_of("array<string>", "input texts . input texts | index"))
    with pytest.raises(InvalidInput, match="elements of one document"):
        elements.derived(ID, values)


def test_a_deep_script_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nested deeper"):
        schema_of("string", "(" * 1000 + "input a" + ")" * 1000 + " | index")
    deep = "(" * (limits.INDEXING_SCRIPT_DEPTH - 1) + "input a" + ")" * (limits.INDEXING_SCRIPT_DEPTH - 1)
    made = processor(schema_of("string", deep + " | index")).derived(ID, {"a": "x"})
    assert made == {"out": "x"}


def test_a_long_script_runs() -> None:
    concat = " . ".join(["input a"] * 2000)
    made = processor(schema_of("string", concat + " | index")).derived(ID, {"a": "x"})
    assert made == {"out": "x" * 2000}
    total = " + ".join(["input n"] * 2000)
    assert processor(schema_of("long", total + " | attribute")).derived(ID, {"n": 2}) == {"out": 4000}


def test_a_component_that_fails_fails_the_document() -> None:
    schema = schema_of("int", "input a | to_int | attribute")
    with pytest.raises(LanguageError):
        processor(schema_of("int", "input a | attribute"))
    with pytest.raises(InvalidInput, match="In document 'id:mynamespace:music:g=jazz:kind/of:blue'"):
        processor(schema).derived(ID, {"a": orjson.dumps("x").decode()})
