"""Which container gets which port: the rules one by one, and what holds for all containers at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.application.services_model import Container, HttpServer
from paperwasp.coordination.config_store import FileConfigStore
from paperwasp.errors import Conflict
from paperwasp.server.roles.ports import VESPA_PORT, PortRecord, Taken, assign

FRONT = 9000


def container(name: str, port: int | None = None) -> Container:
    return Container(name, servers=(HttpServer("server", port),) if port else ())


def ports(
    *containers: Container, recorded: dict[str, int] | None = None, owners: dict[int, str] | None = None, free: int = 0
) -> dict[str, int]:
    """With every port free from `free` on."""
    return assign(containers, recorded or {}, Taken(owners or {}, FRONT), lambda port: port >= free)


def test_the_first_without_a_port_gets_the_front_and_the_others_what_follows() -> None:
    assert ports(container("a", 8090), container("b"), container("c"), container("d")) == {
        "a": 8090,
        "b": FRONT,
        "c": FRONT + 1,
        "d": FRONT + 2,
    }


def test_vespas_port_is_the_front_and_goes_before_who_does_not_ask() -> None:
    assert ports(container("a"), container("b", VESPA_PORT)) == {"a": FRONT + 1, "b": FRONT}


def test_what_was_given_stays_unless_somebody_asks_for_it() -> None:
    assert ports(container("a"), container("b"), recorded={"b": 0, "a": 9050}) == {"a": 9050, "b": FRONT}
    assert ports(container("a"), container("b", 9050), recorded={"a": 9050}) == {"a": FRONT, "b": 9050}
    assert ports(container("a"), recorded={"a": 8500}, free=FRONT + 3) == {"a": FRONT + 3}


def test_ports_of_others_are_passed_over_or_refused() -> None:
    owners = {FRONT: "somebody", FRONT + 1: "somebody else"}
    assert ports(container("a"), owners=owners) == {"a": FRONT + 2}
    with pytest.raises(Conflict, match="'a' cannot listen on port 9001: somebody else has it"):
        ports(container("a", FRONT + 1), owners=owners)
    with pytest.raises(Conflict, match="'a' and 'b' both ask for port 8090"):
        ports(container("a", 8090), container("b", 8090))
    with pytest.raises(Conflict, match="no free port"):
        ports(container("a"), free=FRONT + limits.CONTAINER_PORTS_TRIED)


@given(
    st.lists(st.one_of(st.none(), st.integers(FRONT, FRONT + 8)), max_size=6),
    st.dictionaries(st.integers(0, 5), st.integers(FRONT - 2, FRONT + 8)),
    st.sets(st.integers(FRONT, FRONT + 8), max_size=4),
)
def test_no_two_containers_share_a_port(wishes: list[int | None], recorded: dict[int, int], taken: set[int]) -> None:
    containers = [container(str(number), wish) for number, wish in enumerate(wishes)]
    record = {str(number): port for number, port in recorded.items()}
    try:
        given = ports(*containers, recorded=record, owners=dict.fromkeys(taken, "somebody"))
    except Conflict:
        asked = [wish for wish in wishes if wish]
        assert len(set(asked)) < len(asked) or taken & set(asked)
        return
    assert len(set(given.values())) == len(containers)
    assert not taken & set(given.values())
    assert all(given[c.id] == c.port for c in containers if c.port)


def test_the_record_outlives_a_restart_and_another_front(tmp_path: Path) -> None:
    PortRecord(FileConfigStore(tmp_path)).put("a.b.c", {"one": FRONT, "two": FRONT + 1}, FRONT)
    record = PortRecord(FileConfigStore(tmp_path))
    assert record.get("a.b.c") == {"one": 0, "two": FRONT + 1}
    assert record.get("a.b.d") == {}
    record.put("a.b.c", {}, FRONT)
    assert record.get("a.b.c") == {}
