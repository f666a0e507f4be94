"""Whatever a package holds, it is read or refused with what is wrong: no other error, and in bounded time.

A few thousand inputs in the suite; `PAPERWASP_FUZZ=100000` runs that many of each kind. Mutations know the grammar:
they take words, values and whole elements from where they belong and put them elsewhere.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import re
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.application.changes.overrides import parse_overrides
from paperwasp.application.elements import RULES
from paperwasp.application.findings import Findings
from paperwasp.application.package import read_package
from paperwasp.application.package_files import Hosts, check_files, parse_hosts
from paperwasp.application.preprocess import DeployProperties
from paperwasp.application.services import parse_services
from paperwasp.errors import PaperwaspError
from tests.chance import SEED

INPUTS = int(os.environ.get("PAPERWASP_FUZZ", "1500"))
SLOWEST_S = 5.0
"""For one input, on a machine that does other things too."""

SCRIPTS = Path(__file__).parent / "scripts"
CASES = [
    re.sub(r"^#.*\n", "", case.partition("\n---")[0], flags=re.MULTILINE)
    for path in sorted(SCRIPTS.glob("*.txt"))
    for case in path.read_text().split("\n===\n")
]
WORDS = sorted({word for rule in RULES.values() for word in (*rule.children, *rule.attributes)})
NUMBERS = ["0", "-1", "1", "65536", "9" * 30, "1.5", "1e308", "NaN", "2+1", "[1,2]", "10MiB"]
VALUES = [
    *NUMBERS,
    "true",
    "index",
    "streaming",
    "1.0",
    "prod",
    "dev",
    "id",
    "com.yahoo.A",
    "a.B",
    "n0",
    "services.xml",
]
VALUES += ["${a}", "${", "${}", "*", "1|*", "../a", "ä", "(", "')", "\\", "&lt;", "hugging-face-embedder"]
VALUES += ["", "dev default", "a b", "x" * 3000]
PIECES = """\
<preprocess:include file='{word}.xml'/>
<preprocess:properties><a>{value}</a></preprocess:properties>
<include dir='{word}'/>
<{word} id='{value}' deploy:environment='{value}'/>
<{word}>{value}</{word}>
<{word} version='1.0'><{word}/></{word}>
<group name='g' distribution-key='0'><node hostalias='n' distribution-key='0'/>
<node hostalias='n0' distribution-key='{value}'/>
<server id='{word}' port='{value}'/>
<document type='{word}' mode='{value}' selection='{value}'/>
<!DOCTYPE a [<!ENTITY b 'c'>]>
<![CDATA[{value}]]>
<!-- x -->
&b;
&#0;
<
]]>""".splitlines()
PIECES.append("<a>" * 70 + "</a>" * 70)


def told(kind: str, number: int) -> str:
    return f"{kind}: seed {SEED}, input {number}: run with PAPERWASP_SEED={SEED}"


def run(kind: str, make: Callable[[random.Random], Callable[[], object]]) -> None:
    """Runs the inputs of one kind; only our own errors may come, each of them soon."""
    for number in range(INPUTS):
        attempt = make(random.Random(f"{SEED} {kind} {number}"))
        start = time.monotonic()
        try:
            attempt()
        except PaperwaspError:
            pass
        except Exception as error:
            raise AssertionError(told(kind, number)) from error
        assert time.monotonic() - start < SLOWEST_S, told(kind, number)


def piece(chance: random.Random) -> str:
    return chance.choice(PIECES).replace("{word}", chance.choice(WORDS)).replace("{value}", chance.choice(VALUES))


def mutated(text: str, chance: random.Random) -> str:
    """The text with a few changes where its elements, attributes and values are."""
    for _ in range(chance.randrange(1, 6)):
        spots = [found.span() for found in re.finditer(r"<[^<>]*>|\"[^\"]*\"|[\w.-]+", text)] or [(0, len(text))]
        start, end = chance.choice(spots)
        other_start, other_end = chance.choice(spots)
        match chance.randrange(8):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:start] + text[other_start:other_end] + text[end:]
            case 2:
                text = text[:end] + piece(chance) + text[end:]
            case 3:
                text = text[:start] + chance.choice(WORDS) + text[end:]
            case 4:
                text = text[:start] + f'"{chance.choice(VALUES)}"' + text[end:]
            case 5:
                text = text[:start] + chance.choice(VALUES) + text[end:]
            case 6:
                place = chance.randrange(len(text) + 1)
                text = text[:place] + chr(chance.choice([0, 9, 34, 38, 60, 62, 0xFFFE, 0x1F600])) + text[place:]
            case _:
                low, high = min(start, other_start), max(end, other_end)
                text = text[:high] + text[low:high] + text[high:]
    return text[:200_000]


def files_of(text: str) -> dict[str, bytes]:
    services, *others = re.split(r"^@@ (.*)\n", text, flags=re.MULTILINE)
    files = {path: content.encode("utf-8", "replace") for path, content in zip(others[::2], others[1::2], strict=False)}
    return {**files, "services.xml": services.encode("utf-8", "replace")}


def read_services(files: dict[str, bytes], properties: DeployProperties) -> None:
    findings = Findings()
    hosts = parse_hosts(files["hosts.xml"], findings) if "hosts.xml" in files else Hosts()
    services = parse_services(files, hosts, properties, findings)
    for finding in (*findings.errors, *findings.notes):
        assert str(finding)
    for content in services.content_clusters:
        assert content.redundancy >= 1 and content.groups >= 1


def test_services() -> None:
    def make(chance: random.Random) -> Callable[[], object]:
        files = files_of(mutated(chance.choice(CASES), chance))
        instance = chance.choice(["default", "beta"])
        environment = chance.choice(["prod", "dev", "test"])
        return lambda: read_services(files, DeployProperties(instance=instance, environment=environment))

    run("services", make)


HOSTS = (
    "<hosts>\n<host name='a'><alias>n0</alias><alias>n1</alias></host>\n<host name='b'><alias>n2</alias></host></hosts>"
)
OVERRIDES = (
    "<validation-overrides>\n<allow until='2026-12-01' comment='x'>schema-removal</allow>\n"
    "<allow until='2026-02-30'>indexing-change</allow></validation-overrides>"
)
DEPLOYMENT = (
    "<deployment version='1.0'><instance id='a'><prod><region active='true'>x</region><parallel><steps><test>a</test>"
    "</steps></parallel></prod></instance><block-change days='sat'/></deployment>"
)


@pytest.mark.parametrize(
    ("kind", "text", "read"),
    [
        ("hosts", HOSTS, lambda content: parse_hosts(content, Findings())),
        ("overrides", OVERRIDES, lambda content: parse_overrides(content, "validation-overrides.xml")),
        ("deployment", DEPLOYMENT, lambda content: check_files({"deployment.xml": content}, Findings())),
    ],
    ids=["hosts", "overrides", "deployment"],
)
def test_small_files(kind: str, text: str, read: Callable[[bytes], object]) -> None:
    def make(chance: random.Random) -> Callable[[], object]:
        content = mutated(text, chance).encode("utf-8", "replace")
        return lambda: read(content)

    run(kind, make)


NAMES = [
    "services.xml",
    "schemas/a.sd",
    "a",
    "a/b",
    "./a",
    "a/./b",
    "../a",
    "/a",
    "a//b",
    "a/",
    ".",
    "",
    "é/ü",
    "x" * 1100,
    "a\\b",
    "a\0b",
]


def zip_archive(chance: random.Random) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for name in {chance.choice(NAMES) for _ in range(chance.randrange(5))}:
            entry = zipfile.ZipInfo(name)
            entry.create_system = chance.choice([0, 3])
            entry.external_attr = chance.choice([0, 0o100644, 0o040755, 0o120777, 0o010644, 0xFFFF]) << 16
            archive.writestr(entry, chance.randbytes(chance.randrange(300)))
    return buffer.getvalue()


def tar_archive(chance: random.Random) -> bytes:
    buffer = io.BytesIO()
    form = chance.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for _ in range(chance.randrange(5)):
            name = chance.choice(NAMES)
            entry = tarfile.TarInfo(name[:90] if form == tarfile.USTAR_FORMAT else name)
            entry.type = chance.choice([*(tarfile.REGTYPE,) * 5, *(bytes([each]) for each in b"0123456gKLxSV"), b"5"])
            content = chance.randbytes(chance.randrange(300))
            entry.size = len(content)
            entry.linkname = chance.choice(["", "a", "../../etc/passwd"])
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The bytes as they are, cut, or with some of them changed, where headers are above all."""
    found = bytearray(content)
    for _ in range(chance.choice([0, 0, 1, 2, 5])):
        if not found:
            break
        signatures = [at.start() for at in re.finditer(rb"PK..", bytes(found), re.DOTALL)] or [0]
        place = (chance.choice(signatures) + chance.randrange(50)) % len(found)
        found[place] = chance.choice([0, 1, 255, chance.randrange(256)])
    return bytes(found[: chance.randrange(len(found) + 1)]) if chance.random() < 0.1 else bytes(found)


def unpack(content: bytes) -> None:
    package = read_package(content)
    for path in package.files:
        assert not path.startswith("/") and ".." not in path.split("/") and "\0" not in path
    assert read_package(package.to_zip()).files.keys() == package.files.keys()


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_archives(kind: str) -> None:
    def make(chance: random.Random) -> Callable[[], object]:
        if kind == "zip":
            content = damaged(zip_archive(chance), chance)
        else:
            content = damaged(gzip.compress(damaged(tar_archive(chance), chance), 1), chance)
        return lambda: unpack(content)

    run(kind, make)


def test_a_large_services_xml_is_told_of_soon() -> None:
    """Many elements, all unknown: hints are costly, and only given for problems that are shown."""
    content = b"<services>" + b"<containerr/>" * 10_000 + b"</services>"
    start = time.monotonic()
    findings = Findings()
    parse_services({"services.xml": content}, Hosts(), DeployProperties(), findings)
    assert findings.error_count == 10_000
    assert time.monotonic() - start < SLOWEST_S


def test_includes_that_grow_without_bound_are_refused_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "XML_ELEMENTS", 5_000)
    body = b"<preprocess:include file='b%d.xml'/>"
    files = {f"b{depth}.xml": (body % (depth + 1)) * 40 for depth in range(14)}
    files["b14.xml"] = b"<container id='a' version='1.0'/>" * 40
    files["services.xml"] = b"<services xmlns:preprocess='properties'><preprocess:include file='b0.xml'/></services>"
    start = time.monotonic()
    findings = Findings()
    parse_services(files, Hosts(), DeployProperties(), findings)
    assert any("There are more than" in str(error) for error in findings.errors)
    assert time.monotonic() - start < SLOWEST_S


def test_properties_that_grow_without_bound_are_refused() -> None:
    properties = b"<preprocess:properties><a>" + b"x" * 100_000 + b"</a></preprocess:properties>"
    uses = b"".join(b"<container id='${a}' version='${a}${a}'/>" for _ in range(100))
    content = b"<services xmlns:preprocess='properties'>" + properties + uses + b"</services>"
    findings = Findings()
    parse_services({"services.xml": content}, Hosts(), DeployProperties(), findings)
    assert any("Properties make more than" in str(error) for error in findings.errors)
