"""The gate of feeding: when it closes, what still passes, what it says, and when it opens again.

Authority: https://docs.vespa.ai/en/writing/feed-block.html, and of updates Vespa's FeedRejectHelper (documentapi of the
content layer): adding, tensor modify, `match` and field paths are refused, and so is assigning anything but a number.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.content.upkeep.resources import FeedGate, ResourceLimits, Share, SystemProbe, Usage, limits_of
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import FieldUpdate, Put, Remove, Update
from paperwasp.document.updates import (
    Action,
    Add,
    AddCells,
    Assign,
    Calculate,
    Key,
    ModifyCells,
    RemoveCells,
    Take,
)
from paperwasp.errors import InvalidInput, NoSpace

GIB = 1 << 30
ID = DocumentId.parse("id:ns:music::1")
PUT = Put(ID, {})


def usage(disk: float = 0.1, memory: float | None = 0.1, free_bytes: int = 100 * GIB) -> Usage:
    """Shares of these ratios."""
    used = Share(round(free_bytes * disk / (1 - disk)), free_bytes)
    return Usage(used, None if memory is None else Share(round(1000 * memory), round(1000 * (1 - memory))))


def is_open(gate: FeedGate) -> bool:
    try:
        gate.check(PUT)
    except NoSpace:
        return False
    return True


def test_what_is_larger_than_the_cluster_takes_is_refused() -> None:
    """Vespa: its pull request 33609 checks puts and updates alone."""
    gate = FeedGate("example")
    update = Update(ID, (FieldUpdate("a", Assign(1)),))
    gate.check(PUT, limits.DOCUMENT_BYTES)
    with pytest.raises(InvalidInput, match=str(limits.DOCUMENT_BYTES + 1)):
        gate.check(PUT, limits.DOCUMENT_BYTES + 1)
    gate.configure(limits_of({}, 10_000))
    gate.check(update, 10_000)
    gate.check(Remove(ID), 10_001)
    for operation in (PUT, update):
        with pytest.raises(InvalidInput, match="10001 bytes, more than the 10000 that content cluster 'example' takes"):
            gate.check(operation, 10_001)


def test_full_disk_closes_and_a_little_less_opens() -> None:
    gate = FeedGate("example")
    for disk, expected in ((0.74, True), (0.7501, False), (0.745, False), (0.7399, True), (0.7499, True)):
        gate.observe(usage(disk))
        assert is_open(gate) == expected, disk


def test_memory_has_its_own_limit_and_may_be_unknown() -> None:
    gate = FeedGate("example")
    gate.observe(usage(0.1, 0.81))
    assert not is_open(gate)
    gate.observe(usage(0.1, None))
    assert is_open(gate)


def test_messages_are_those_of_vespa() -> None:
    gate = FeedGate("example")
    gate.configure(ResourceLimits(), "vespa-host", 3)
    gate.observe(usage(0.767))
    where = "External feed is blocked due to resource exhaustion: in content cluster 'example'"
    disk = "disk on node 3 [vespa-host] is 76.7% full (the configured limit is 75.0%"
    assert gate.reason == f"ReturnCode(NO_SPACE, {where}: {disk}))"
    gate.observe(usage(0.767, 0.82))
    lowered = ", effective limit lowered to 74.0% until feed unblocked"
    memory = "memory on node 3 [vespa-host] is 82.0% full (the configured limit is 80.0%"
    assert gate.reason == f"ReturnCode(NO_SPACE, {where}: {disk}{lowered}), {memory}))"
    with pytest.raises(NoSpace, match="NO_SPACE") as refused:
        gate.check(PUT)
    assert refused.value.http_status == 507


def test_a_disk_full_of_other_things_leaves_a_reserve() -> None:
    gate = FeedGate("example")
    reserve = limits.DISK_RESERVE_BYTES
    for free_bytes, expected in ((reserve, True), (reserve - 1, False), (reserve, False), (reserve * 5 // 4, True)):
        gate.observe(usage(0.1, free_bytes=free_bytes))
        assert is_open(gate) == expected, free_bytes
    gate.observe(usage(0.1, free_bytes=10 << 20))
    assert "has 10 MiB left (at least 256 MiB are needed)" in (gate.reason or "")


def test_other_limits_are_judged_anew() -> None:
    gate = FeedGate("example")
    gate.observe(usage(0.76))
    gate.configure(ResourceLimits(disk=0.765))
    gate.observe(usage(0.76))
    assert is_open(gate), "the lowered limit is that of a limit that is no more"


UPDATES: list[tuple[Action, tuple[Key, ...], bool]] = [
    (Assign(5), (), True),
    (Assign(0.5), (), True),
    (Assign(True), (), True),
    (Assign(None), (), True),
    (Assign("text"), (), False),
    (Assign([1]), (), False),
    (Calculate("increment", 1), (), True),
    (Take(("a",)), (), True),
    (RemoveCells(((("x", "a"),),)), (), True),
    (Add(["a"]), (), False),
    (AddCells(None), (), False),  # type: ignore[arg-type]  # what is added does not matter
    (ModifyCells("replace", ()), (), False),
    (Assign(5), (Key("a"),), False),
    (Take(), (Key("a"),), False),
    (Calculate("increment", 1), (Key("a"),), False),
]


@pytest.mark.parametrize(("action", "path", "passes"), UPDATES)
def test_updates_that_cannot_grow_pass(action: Action, path: tuple[Key, ...], passes: bool) -> None:
    gate = FeedGate("example")
    gate.observe(usage(0.9))
    harmless = FieldUpdate("year", Assign(1))
    update = Update(ID, (harmless, FieldUpdate("field", action, path)))
    if passes:
        gate.check(update)
    else:
        with pytest.raises(NoSpace):
            gate.check(update)


def test_removes_pass() -> None:
    gate = FeedGate("example")
    gate.observe(usage(0.9))
    gate.check(Remove(ID))
    with pytest.raises(NoSpace):
        gate.check_any()


def test_the_log_says_when_it_begins_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    gate = FeedGate("example")
    for disk in (0.5, 0.8, 0.8, 0.5, 0.5):
        gate.observe(usage(disk))
    assert [(record.levelname, record.getMessage()[:28]) for record in caplog.records] == [
        ("WARNING", "Feeding is blocked due to re"),
        ("INFO", "Feeding is no longer blocked"),
    ]


def test_metrics() -> None:
    gate = FeedGate("example")
    gate.observe(Usage(Share(3 * GIB, GIB), Share(1, 3)))
    assert gate.metrics() == {
        "content.proton.resource_usage.disk": 0.75,
        "content.proton.resource_usage.memory": 0.25,
        "content.proton.resource_usage.feeding_blocked": 0.0,
        "cluster-controller.resource_usage.nodes_above_limit": 0.0,
    }


@pytest.mark.parametrize(
    ("tuning", "disk", "memory"),
    [
        ({}, 0.75, 0.8),
        ({"tuning/resource-limits/disk": "0.78", "tuning/resource-limits/memory": "0.77"}, 0.78, 0.77),
        ({"engine/proton/resource-limits/disk": "0.83"}, 0.82, 0.8),
        ({"engine/proton/resource-limits/disk": "0.83", "tuning/resource-limits/disk": "0.9"}, 0.83, 0.8),
        ({"engine/proton/resource-limits/memory": "0.83", "tuning/resource-limits/memory": "0.5"}, 0.75, 0.5),
    ],
)
def test_limits_of_services_xml(tuning: dict[str, str], disk: float, memory: float) -> None:
    """Vespa: the limit of the cluster counts; where only that of the node is said, it is a hundredth below it."""
    found = limits_of(tuning)
    assert (found.disk, found.memory) == pytest.approx((disk, memory))


def test_the_probe_counts_files_once(tmp_path: Path) -> None:
    folder = tmp_path / "folder" / "below"
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(b"x" * 100_000)
    os.link(folder / "file", tmp_path / "again")
    (tmp_path / "link").symlink_to(folder)
    found = SystemProbe(tmp_path)()
    assert 100_000 <= found.disk.own_bytes < 200_000
    assert found.disk.free_bytes > 0
    assert found.memory is None or 0 < found.memory.ratio < 1
