"""Random packages deployed in turn in process, with random documents and queries. PAPERWASP_FUZZ: how many.

Nothing fails but by what the package's errors are for: a package that is wrong says where, a request never gets a
status of 500 or above, and what is read can be written and is then read again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import paperwasp
from paperwasp.embedded.requests import RequestFailed
from paperwasp.errors import InvalidPackage, NotFound, PaperwaspError
from tests.embedded.random_packages import DrawnPackage, documents, packages, queries

EXAMPLES = int(os.environ.get("PAPERWASP_FUZZ", "40"))


@pytest.fixture(scope="module")
def service() -> Iterator[paperwasp.Service]:
    with paperwasp.Service() as service:
        yield service


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(package=packages(), data=st.data())
def test_a_package_is_refused_with_a_place_or_serves(
    service: paperwasp.Service, package: DrawnPackage, data: st.DataObject
) -> None:
    if not _deployed(service, package):
        event("refused")
        return
    event("deployed")
    service.clear()
    for schema in package.schemas:
        fields = package.fields_of(schema)
        written = data.draw(st.lists(documents(fields), max_size=2))
        for number, values in enumerate(written):
            _check_document(service, f"id:n:{schema.name}::{number}", values)
        if package.mode == "index":
            found = service.query(f"select * from {schema.name} where true", ranking="unranked", timeout="60s")
            assert found.total >= len(written)
        for parameters in data.draw(st.lists(queries(schema, list(fields)), min_size=2, max_size=5)):
            _check_query(service, parameters)


def _deployed(service: paperwasp.Service, package: DrawnPackage) -> bool:
    """Deploys over what is there, or, where that is refused, in its place. False: the package is wrong."""
    try:
        service.deploy(package.files())
        return True
    except PaperwaspError as error:
        assert error.http_status < 500, error
    with suppress(NotFound):
        service.undeploy()
    try:
        service.deploy(package.files())
        return True
    except InvalidPackage as refused:
        assert refused.findings
        for finding in refused.findings:
            assert finding.position is not None, f"{finding}\n{package.files()}"
        return False


def _check_document(service: paperwasp.Service, id: str, values: dict[str, Any]) -> None:
    """What is read can be written again, and is then read again."""
    service.put(id, values)
    read = service.get(id)
    assert read is not None and read.fields.keys() <= values.keys()
    service.put(id, read.fields)
    again = service.get(id)
    assert again is not None and repr(again.fields) == repr(read.fields)


def _check_query(service: paperwasp.Service, parameters: dict[str, Any]) -> None:
    try:
        service.query(parameters)
        event("answered")
    except RequestFailed as failed:
        event(f"query: {failed.status}")
        assert failed.status < 500, (parameters, failed.content)
