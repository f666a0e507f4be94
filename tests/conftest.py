"""What holds for all tests: the same seed in every run, the longest files first, no deadline but a test's own."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import replicas
from tests.chance import FIXED_SEED, SEED

settings.register_profile(
    "paperwasp",
    deadline=None,
    print_blob=True,
    derandomize=SEED == FIXED_SEED,
    # The second: examples that share a fixture do so knowingly, and use a folder of their own in it.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("paperwasp")

ROOT = Path(__file__).parent.parent
DURATIONS = Path(__file__).with_name("durations.txt")
"""Seconds of processor time that the files of tests took, for their order alone: `make durations` writes it."""


def pytest_report_header() -> str:
    return f"random tests: PAPERWASP_SEED={SEED}"


def read_durations() -> dict[str, float]:
    """Return the seconds that each file of tests took when they were recorded."""
    lines = (line.split() for line in DURATIONS.read_text().splitlines())
    return {name: float(seconds) for seconds, name in lines}


@pytest.fixture(autouse=True, scope="session")
def _messenger() -> Iterator[None]:
    """With PAPERWASP_MESSENGER=pipe all services of the tests' process have a messenger that sends bytes."""
    if os.environ.get("PAPERWASP_MESSENGER") != "pipe":
        yield
        return
    from tests.messengers import over_pipe  # not at the top: it loads the service

    with over_pipe():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collections, and keep a million objects that stay out of those of the tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first, so that no process is left with a long one at the end."""
    seconds = read_durations()
    items.sort(key=lambda item: -seconds.get(item.nodeid.partition("::")[0], 1.0))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> object:
    """Append the processor time of each test, with that of processes it waited for, to PAPERWASP_DURATIONS."""
    before = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        if path := os.environ.get("PAPERWASP_DURATIONS"):
            with Path(path).open("a") as file:
                file.write(f"{sum(os.times()[:4]) - before:.2f} {item.nodeid.partition('::')[0]}\n")


if replicas.ENABLED:
    replicas.begin()

    @pytest.fixture(autouse=True)
    def _compared() -> Generator[None]:
        """Nodes are compared with their second replicas."""
        yield
        assert not (differing := replicas.differences()), differing

    def pytest_sessionfinish(session: pytest.Session) -> None:
        """Say how many comparisons there were."""
        if path := os.environ.get("PAPERWASP_REPLICAS_COUNTS"):
            with Path(path).open("a") as file:
                file.write(f"{replicas.counts}\n")
