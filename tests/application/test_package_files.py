"""Which folder of a package may hold which files, what is told of them, and deployment.xml."""

from __future__ import annotations

import pytest

from paperwasp.application.findings import Findings
from paperwasp.application.package_files import check_files


def told_of(*paths: str, content: bytes = b"") -> list[str]:
    findings = Findings()
    check_files(dict.fromkeys(paths, content), findings)
    return [f"{finding.level} {finding}" for finding in (*findings.errors, *findings.notes)]


@pytest.mark.parametrize(
    "path",
    [
        "models/any.thing",
        "files/x",
        "constants/c.json",
        "constants/c.json.lz4",
        "constants/.gitignore",
        "schemas/music.sd",
        "schemas/music/p.profile",
        "searchdefinitions/old.sd",
        "search/query-profiles/types/root.xml",
        "security/clients.pem",
        "README.md",
        "tests/system-test/t.json",
        ".vespaignore",
    ],
)
def test_files_that_nothing_is_said_of(path: str) -> None:
    assert told_of(path) == []


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("components/a.jar", "ERROR components/a.jar: there is no Java here to run components"),
        ("page-templates/p.xml", "WARNING page-templates/p.xml: page templates are not executed yet"),
        ("routing/tables/t.xml", "WARNING routing/tables/t.xml: routing is not executed yet"),
    ],
)
def test_files_that_are_not_executed(path: str, told: str) -> None:
    assert told_of(path) == [told]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("constants/c.txt", "in 'constants' are files with .json or .json.lz4 or .tbf"),
        ("schemas/readme.md", "in 'schemas' are files with .sd or .expression or .profile"),
        ("schemas/music/p.sd", "in 'schemas/music' are files with .profile or .expression"),
        ("rules/en.txt", "in 'rules' are files with .sr"),
        ("components/deep/a.class", "in 'components' are files with .jar"),
        ("search/query-profiles/a.json", "in 'search/query-profiles' are files with .xml"),
    ],
)
def test_files_with_the_wrong_suffix(path: str, expected: str) -> None:
    (told,) = told_of(path)
    assert told.startswith(f"ERROR File in application package with unknown extension: {path}, please delete it")
    assert told.endswith(expected)


DEPLOYMENT = b"""<deployment version="1.0" cloud-account="aws:1">
  <test><tester><nodes count="1"><resources vcpu="8"/></nodes></tester></test>
  <instance id="beta" tags="a b">
    <prod>
      <region active="true">us-east-1</region><delay hours="4"/>
      <parallel><region>a</region><steps><test>a</test></steps></parallel>
    </prod>
    <endpoints><endpoint id="x" container-id="default"><region>us-east-1</region></endpoint></endpoints>
  </instance>
  <block-change days="sat,sun" hours="0-23" time-zone="UTC"/>
  <resource-tags><tag key="env" value="${environment}"/></resource-tags>
  <backup frequency="7d" granularity="cluster"/>
  <dev tags="x"><endpoints><endpoint type="zone" container-id="c" enabled="false"/></endpoints></dev>
  <upgrade policy="canary"/>
</deployment>"""


def test_deployment_xml_is_checked_and_has_no_effect() -> None:
    path = "deployment.xml"
    assert told_of(path, content=DEPLOYMENT) == [
        "INFO deployment.xml has no effect: there is one place to deploy to",
    ]
    assert told_of(path, content=b'<deployment version="1.0"/>') == []
    assert told_of(path, content=b"<deploy/>") == [
        "ERROR deployment.xml, line 1, column 1: element 'deploy' not allowed here; expected element 'deployment'"
    ]
    (told, _) = told_of(path, content=DEPLOYMENT.replace(b"<upgrade", b"<upgrad"))
    assert told == (
        "ERROR deployment.xml, line 14, column 3: element 'upgrad' not allowed here, in 'deployment'; "
        "did you mean 'upgrade'?"
    )
    assert told_of(path, content=b"<deployment")[0].startswith("ERROR deployment.xml, line 1")
