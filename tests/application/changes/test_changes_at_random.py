"""Laws of the comparison of applications, on fields made at random. PAPERWASP_FUZZ: how many pairs."""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.application.changes.find import find_changes
from paperwasp.application.changes.found import Changes, describe_actions, describe_refusals
from paperwasp.application.changes.validations import VALIDATIONS
from paperwasp.base.records import replace
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import (
    INT,
    PREDICATE,
    STRING,
    DataType,
    array_of,
    map_of,
    struct_of,
    tensor_field,
    weighted_set_of,
)
from paperwasp.schema.model import AttributeSettings, Field, Hnsw, IndexingScript, IndexSettings, MatchSettings
from tests.application.changes.change_models import with_fields

EXAMPLES = int(os.environ.get("PAPERWASP_FUZZ", "200"))

SINGLE: st.SearchStrategy[DataType] = st.sampled_from(
    [STRING, INT, PREDICATE, tensor_field(TensorType.parse("tensor(x[2])")), tensor_field(TensorType.parse("tensor()"))]
)
TYPES: st.SearchStrategy[DataType] = st.recursive(
    SINGLE,
    lambda inner: (
        inner.map(array_of)
        | inner.map(weighted_set_of)
        | st.builds(map_of, inner, inner)
        | st.builds(struct_of, st.sampled_from("st"), st.dictionaries(st.sampled_from("xyz"), inner, max_size=3))
    ),
    max_leaves=4,
)
FLAG = st.booleans()
INDEXES = st.builds(
    IndexSettings,
    stemming=st.sampled_from(["none", "best"]),
    normalizing=FLAG,
    enable_bm25=FLAG,
    hnsw=st.none() | st.builds(Hnsw, st.integers(2, 3), st.integers(2, 3)),
    arity=st.none() | st.integers(2, 3),
)
ATTRIBUTES = st.builds(
    AttributeSettings, FLAG, FLAG, FLAG, FLAG, FLAG, FLAG, FLAG, FLAG, FLAG, st.sampled_from(["", "angular"])
)
SCRIPTS = st.none() | st.builds(
    IndexingScript,
    st.lists(st.sampled_from(['"', "|", "index", " ", "input a", "\\", ";"])).map("".join),
    is_plain=FLAG,
)
FIELDS = st.builds(
    Field,
    st.sampled_from("abc"),
    TYPES,
    index=st.none() | INDEXES,
    attribute=st.none() | ATTRIBUTES,
    summary=FLAG,
    match=st.sampled_from([None, "text", "word", "gram", "cased"]),
    match_settings=st.builds(MatchSettings, gram_size=st.integers(1, 3)),
    cased=FLAG,
    bolding=FLAG,
    in_document=FLAG,
    script=SCRIPTS,
)
SCHEMAS = st.lists(FIELDS, max_size=3, unique_by=lambda field: field.name)
MODES = st.sampled_from(["index", "streaming", "store-only"])


@settings(max_examples=EXAMPLES, deadline=None)
@given(SCHEMAS, SCHEMAS, MODES, MODES)
def test_what_must_be_allowed_is_an_action_or_told_alone(
    before: list[Field], after: list[Field], mode: str, new_mode: str
) -> None:
    changes = find_changes(with_fields(*before, mode=mode), with_fields(*after, mode=new_mode))
    refused = {(refusal.validation_id, refusal.message) for refusal in changes.refusals}
    for action in changes.actions:
        assert action.messages == tuple(sorted(action.messages))
        if action.validation_id is not None:
            assert {(action.validation_id, message) for message in action.messages} <= refused
    assert {validation_id for validation_id, _ in refused} <= VALIDATIONS.keys()
    assert len({(action.kind, action.name, action.document_type) for action in changes.actions}) == len(changes.actions)
    assert len(describe_actions(changes)) == len({action.kind for action in changes.actions})
    assert bool(describe_refusals(changes.refusals)) == bool(refused)


@settings(max_examples=EXAMPLES, deadline=None)
@given(SCHEMAS, MODES)
def test_nothing_changed_is_no_change(fields: list[Field], mode: str) -> None:
    copies = [replace(field) for field in fields]
    assert find_changes(with_fields(*fields, mode=mode), with_fields(*copies, mode=mode)) == Changes()


@settings(max_examples=EXAMPLES, deadline=None)
@given(SCHEMAS, st.lists(FIELDS, max_size=2, unique_by=lambda field: field.name))
def test_fields_of_the_document_come_and_go_freely(fields: list[Field], more: list[Field]) -> None:
    new = [replace(field, name=f"new_{field.name}", in_document=True) for field in more]
    few, many = with_fields(*fields), with_fields(*fields, *new)
    assert find_changes(few, many) == find_changes(many, few) == Changes()
