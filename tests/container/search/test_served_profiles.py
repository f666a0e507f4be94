"""Rank profiles are compiled once for the container and the content node of a process."""

from __future__ import annotations

import gc

import pytest

from paperwasp.container.search.config import ClusterConfig, SearchConfig
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Schema
from paperwasp.search.features import compile as compile_module
from paperwasp.search.features.compile import served_profile
from paperwasp.search.served import ServedSchemas

TEXT = """
schema s {
  document s { field a type int { indexing: attribute } }
  rank-profile p { first-phase { expression: attribute(a) }
    global-phase { expression: attribute(a) * 2 } }
}
"""


def parsed() -> dict[str, Schema]:
    return dict(parse_schemas({"schemas/s.sd": TEXT}).schemas)


def test_a_container_takes_what_its_content_node_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    schemas = parsed()
    served = ServedSchemas()
    served.compile_all(schemas, {})
    monkeypatch.delattr(compile_module, "compile_profile")
    config = SearchConfig((ClusterConfig("c", schemas),))
    assert config.profile_problem(schemas["s"], "p") == ""
    assert config.global_phase(schemas["s"], "p") is served.ready_profile(schemas["s"], "p").profile.global_phase
    assert config.global_phase(schemas["s"], "default") is None
    assert "does not contain requested rank profile 'none'" in config.profile_problem(schemas["s"], "none")


def test_profiles_of_schemas_that_are_equal_are_not_shared() -> None:
    first, second = parsed()["s"], parsed()["s"]
    assert first == second
    kept = [served_profile(schema, "p") for schema in (first, second, first)]
    assert kept[0] is kept[2] is not kept[1]
    assert served_profile(first, "none") is None


def test_a_profile_that_nobody_serves_is_forgotten() -> None:
    schema = parsed()["s"]
    before = len(compile_module._served)
    kept = served_profile(schema, "p")
    assert len(compile_module._served) == before + 1
    del kept
    gc.collect()
    assert len(compile_module._served) <= before
