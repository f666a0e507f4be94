"""All suites of an application, each on a service of its own: what `paperwasp test` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from paperwasp.embedded.service import Service
from paperwasp.testing.running import Failure, Report, run_tests
from paperwasp.testing.suites import SETUP, STAGING, SYSTEM, BrokenTest, SuiteTest, find_suite, read_suite


def run_suites(
    application: Path, named: Sequence[Path], upgrade_from: Path | None, report: Report, *, allow_python: bool = False
) -> bool:
    """Runs the named tests, or all suites of the application. False: some failed.

    Errors: BrokenTest; what is wrong with the application.
    """
    count = 0
    failures: list[Failure] = []
    for before, after in _stages(application, named):
        first = upgrade_from if before and upgrade_from is not None else application
        with Service(first, allow_python_components=allow_python) as service:
            failures += run_tests(service, before, report)
            if first is not application:
                service.deploy(application)
            failures += run_tests(service, after, report)
            count += len(before) + len(after)
    plural = "" if count == 1 else "s"
    if failures:
        report(f"\nFailure: {len(failures)} of {count} test{plural} failed:")
        report("\n".join(map(str, failures)))
    else:
        report(f"\nSuccess: {count} test{plural} OK")
    return not failures


def _stages(application: Path, named: Sequence[Path]) -> Iterator[tuple[list[SuiteTest], list[SuiteTest]]]:
    """What runs on one service each: the tests before an upgrade, and those after it. All files are read first, so that
    a broken one is known before anything runs."""
    if named:
        yield [], [test for path in named for test in read_suite(path)]
        return
    if not application.exists():
        raise BrokenTest(f"There is no application '{application}'")
    found = {name: read_suite(folder) for name in (SYSTEM, SETUP, STAGING) if (folder := find_suite(application, name))}
    if not found:
        raise BrokenTest(f"'{application}' has no tests: they are files of JSON in tests/system-test/")
    if SYSTEM in found:
        yield [], found[SYSTEM]
    if SETUP in found or STAGING in found:
        yield found.get(SETUP, []), found.get(STAGING, [])
