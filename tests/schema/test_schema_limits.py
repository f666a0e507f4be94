"""Schemas that say little and mean much: what is inherited many times is counted, and the work has an end."""

from __future__ import annotations

import pytest

from paperwasp import limits
from paperwasp.schema import InvalidSchemas, parse_schemas

MANY = 40
FIELDS = "".join(f"field f{n} type int {{ indexing: summary | attribute }}\n" for n in range(MANY))


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCHEMA_PARTS", 10 * MANY)


def problems(files: dict[str, str]) -> str:
    with pytest.raises(InvalidSchemas) as raised:
        parse_schemas(files)
    return raised.value.message


def schema(body: str, document: str = "") -> dict[str, str]:
    return {"schemas/a.sd": f"schema a {{ document a {{ {document} }} {body} }}"}


def test_documents_that_inherit_many_fields() -> None:
    files = {f"schemas/d{n}.sd": f"document d{n} inherits big {{}}" for n in range(MANY)}
    assert "more than 400 fields" in problems({"schemas/big.sd": f"document big {{ {FIELDS} }}", **files})


def test_structs_that_inherit_many_fields() -> None:
    big = "struct big { " + "".join(f"field f{n} type int {{}}\n" for n in range(MANY)) + "}\n"
    heirs = "".join(f"struct s{n} inherits big {{}}\n" for n in range(MANY))
    assert "the structs have more than 400 fields" in problems(schema("", big + heirs))


def test_fields_of_large_types() -> None:
    big = "struct big { " + "".join(f"field f{n} type int {{}}\n" for n in range(MANY)) + "}\n"
    files = schema("", big + "".join(f"field g{n} type big {{}}\n" for n in range(MANY)))
    files["schemas/other.sd"] = "document other inherits a {}"
    assert "fields and types within them" in problems({"schemas/z.sd": "document z {}", **files})


def test_profiles_that_inherit_many_functions() -> None:
    big = "rank-profile big { " + "".join(f"function f{n}() {{ expression: 1 }}\n" for n in range(MANY)) + "}\n"
    heirs = "".join(f"rank-profile p{n} inherits big {{}}\n" for n in range(MANY))
    assert "more than 400 settings" in problems(schema(big + heirs))


def test_profiles_with_settings_of_many_fields() -> None:
    weighty = FIELDS.replace("attribute }", "attribute\nweight: 3 }")
    profiles = "".join(f"rank-profile p{n} {{ weight f1: 7 }}\n" for n in range(MANY))
    assert "more than 400 settings" in problems(schema(profiles, weighty))
    shared = "".join(f"rank-profile p{n} {{}}\n" for n in range(MANY))
    found = parse_schemas(schema(shared, weighty)).schemas["a"].rank_profiles
    assert found["p1"].field_weights is found["p2"].field_weights


def test_summaries_that_inherit_many_fields() -> None:
    big = "document-summary big { " + "".join(f"summary f{n} {{}}\n" for n in range(MANY)) + "}\n"
    heirs = "".join(f"document-summary s{n} inherits big {{}}\n" for n in range(MANY))
    assert "show more than 400 fields" in problems(schema(big + heirs, FIELDS))


def test_problems_have_an_end() -> None:
    names = ", ".join(f"unknown{n}" for n in range(limits.SCHEMA_PROBLEMS * 2))
    with pytest.raises(InvalidSchemas) as raised:
        parse_schemas(schema(f"fieldset default {{ fields: {names} }}"))
    assert len(raised.value.findings) == limits.SCHEMA_PROBLEMS


@pytest.mark.parametrize(("size", "fits"), [(1 << 11, True), ((1 << 11) + 1, False), (2**31 - 1, False)])
def test_tensors_of_many_cells(size: int, fits: bool) -> None:
    """There may be 2 to the 22nd cells to each label; a column has room for a first tensor from the start."""
    files = schema("", f"field t type tensor<float>(k{{}},x[2048],y[{size}]) {{ indexing: attribute }}")
    if fits:
        assert parse_schemas(files).schemas["a"].fields["t"].type.name.startswith("tensor")
    else:
        assert "at most 4194304 cells (FIELD_TENSOR_CELLS in paperwasp.limits)" in problems(files)


@pytest.mark.parametrize(("links", "fits"), [(1, True), (1024, True), (1025, False), (2**31 - 1, False)])
def test_graphs_of_many_links(links: int, fits: bool) -> None:
    """The kernel makes none with more than 1024."""
    element = f"index {{ hnsw {{ max-links-per-node: {links} }} }}"
    files = schema("", f"field t type tensor<float>(x[2]) {{ indexing: attribute | index\n {element} }}")
    if fits:
        index = parse_schemas(files).schemas["a"].fields["t"].index
        hnsw = index.hnsw if index else None
        assert hnsw is not None and hnsw.max_links_per_node == links
    else:
        assert "1024" in problems(files)
