"""Files of a package: which folder may hold which, and what `.vespaignore` leaves out.

Authority of the patterns, which are Go's `filepath.Match`: its documentation.
"""

from __future__ import annotations

import pytest

from paperwasp.application.findings import Findings
from paperwasp.application.package import parse_ignored
from paperwasp.application.package_files import check_files
from paperwasp.errors import LanguageError


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
    "path",
    [
        "constants/c.txt",
        "schemas/README.md",
        "schemas/music/p.sd",
        "rules/en.txt",
        "components/x.json",
        "components/deep/a.class",
        "search/query-profiles/a.json",
    ],
)
def test_files_with_the_wrong_suffix_are_warned_of(path: str) -> None:
    """Vespa: SessionRepository.validateFileExtensions, message of FilesApplicationPackage.validateFileExtensions."""
    assert told_of(path) == [
        f"WARNING File in application package with unknown extension: {path}, "
        "please delete or move file to another directory."
    ]


def test_components_in_python_are_no_strangers() -> None:
    assert told_of("components/a.py") == told_of("components/deep/b.py") == []


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


@pytest.mark.parametrize(
    ("pattern", "path", "is_ignored"),
    [
        ("abc", "abc", True),
        ("*", "abc", True),
        ("*c", "abc", True),
        ("a*", "ab/c", False),
        ("a*/b", "abc/b", True),
        ("a*b*c*d*e*/f", "axbxcxdxe/f", True),
        ("a*b?c*x", "abxbbxdbxebxczzx", True),
        ("a?c", "a/c", False),
        ("ab[c]", "abc", True),
        ("ab[b-d]", "abc", True),
        ("ab[e-g]", "abc", False),
        ("ab[^c]", "abc", False),
        ("ab[^e-g]", "abc", True),
        ("ab[!c]", "ab!", True),
        ("a\\*b", "a*b", True),
        ("a\\*b", "ab", False),
        ("[\\]a]", "]", True),
        ("[x\\-]", "-", True),
        ("**/x", "a/b/x", False),
        ("foo/", "foo/a/b", True),
        ("foo/", "foo", False),
        ("foo/", "a/foo/b", False),
        ("README.md", "docs/README.md", False),
        ("a.c", "abc", False),
        ("ü*", "über", True),
    ],
)
def test_a_pattern_fits_a_path_or_not(pattern: str, path: str, is_ignored: bool) -> None:
    assert (path in parse_ignored(f"# comment\n\n  {pattern}  \n")) is is_ignored


def test_nothing_is_ignored_without_patterns() -> None:
    assert "a" not in parse_ignored("")
    assert "a" not in parse_ignored("# a\n \n")


@pytest.mark.parametrize("pattern", ["[]a]", "[-]", "[x-]", "[-x]", "[", "[^", "[^bc", "a[", "[a-b-c]", "\\", "[b-a]"])
def test_a_bad_pattern_is_an_error_with_its_line(pattern: str) -> None:
    with pytest.raises(LanguageError, match=r"\.vespaignore, line 2, column 1: bad pattern"):
        parse_ignored(f"*.md\n{pattern}")
