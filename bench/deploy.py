"""How long deployments take, and what is left of a thousand of them: memory and disk.

The large package has every kind of thing that is checked: text with bm25, attributes, arrays, rank profiles that
inherit and call functions. "Changed" differs in one expression of every rank profile.
"""

from __future__ import annotations

import http.client
import io
import json
import statistics
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.report import Report, Row
from bench.service import Running, data_directory, paperwasp

MOST_CHANGED_SECONDS: Final = 2.0
MOST_UNCHANGED_SECONDS: Final = 0.5
MOST_GROWTH_MB: Final = 30
MOST_DISK_GROWTH_MB: Final = 5
_DEPLOY: Final = "/application/v2/tenant/default/prepareandactivate"
_KINDS: Final = (
    ("string", "index | summary", "index: enable-bm25"),
    ("int", "attribute | summary", "attribute: fast-search"),
    ("array<string>", "attribute | summary", ""),
    ("float", "attribute", ""),
    ("long", "attribute | summary", ""),
)


@dataclass(frozen=True)
class Options:
    schemas_count: int = 20
    fields_count: int = 50
    profiles_count: int = 20
    repeats: int = 5
    deployments_count: int = 1000


def run(report: Report, options: Options) -> None:
    """The large package anew, unchanged and changed; then many deployments of a small one."""
    with data_directory() as data, paperwasp(data, None) as server:
        port = config_port(server)
        first = deploy_zip(port, package(options, 0))
        unchanged = statistics.median(deploy_zip(port, package(options, 0)) for _ in range(options.repeats))
        changed = statistics.median(deploy_zip(port, package(options, n + 1)) for n in range(options.repeats))
    size = (
        f"{options.schemas_count} schemas of {options.fields_count} fields and {options.profiles_count} rank profiles"
    )
    report.add(_row(f"deploy {size}", first, MOST_CHANGED_SECONDS))
    report.add(_row("deploy it changed", changed, MOST_CHANGED_SECONDS))
    report.add(_row("deploy it unchanged", unchanged, MOST_UNCHANGED_SECONDS))
    _many(report, options)


def _many(report: Report, options: Options) -> None:
    small = Options(schemas_count=1, fields_count=5, profiles_count=2)
    tenth = options.deployments_count // 10
    with data_directory() as data, paperwasp(data, None) as server:
        port = config_port(server)

        def deploy(numbers: range) -> float:
            return sum(deploy_zip(port, package(small, number)) for number in numbers)

        deploy(range(tenth))
        memory_mb, disk_mb = server.resident_mb(), _size_mb(data)
        seconds = deploy(range(tenth, options.deployments_count))
        memory_growth, disk_growth = server.resident_mb() - memory_mb, _size_mb(data) - disk_mb
    count = options.deployments_count - tenth
    report.add(Row(f"{count} more deployments of a small package", f"{1000 * seconds / count:.1f} ms each"))
    report.add(_growth("memory", memory_mb, memory_growth, MOST_GROWTH_MB))
    report.add(_growth("disk", disk_mb, disk_growth, MOST_DISK_GROWTH_MB))


def package(options: Options, version: int) -> bytes:
    """The package as a zip; versions differ in the rank profiles of every schema."""
    names = [f"type{number}" for number in range(options.schemas_count)]
    documents = "".join(f'<document type="{name}" mode="index"/>' for name in names)
    services = (
        '<services version="1.0"><container id="default" version="1.0"><search/><document-api/></container>'
        f'<content id="all" version="1.0"><redundancy>1</redundancy><documents>{documents}</documents>'
        '<nodes><node hostalias="node1" distribution-key="0"/></nodes></content></services>'
    )
    return zip_of(
        {"services.xml": services} | {f"schemas/{name}.sd": _schema(name, options, version) for name in names}
    )


def zip_of(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _schema(name: str, options: Options, version: int) -> str:
    fields = "\n".join(_field(number) for number in range(options.fields_count))
    profiles = "\n".join(_profile(number, version) for number in range(options.profiles_count))
    text = ", ".join(f"field{number}" for number in range(0, options.fields_count, len(_KINDS)))
    document = f"document {name} {{\n{fields}\n }}\n fieldset default {{ fields: {text} }}"
    return f"schema {name} {{\n {document}\n{profiles}\n}}\n"


def _field(number: int) -> str:
    type_, indexing, setting = _KINDS[number % len(_KINDS)]
    return f"  field field{number} type {type_} {{\n   indexing: {indexing}\n   {setting}\n  }}"


def _profile(number: int, version: int) -> str:
    inherits = "inherits profile0 " if number else ""
    return (
        f" rank-profile profile{number} {inherits}{{\n"
        f"  function text{number}() {{ expression: bm25(field0) * {number + 1} + nativeRank }}\n"
        f"  function fresh{number}(x) {{ expression: if (attribute(field1) > x, {version}, attribute(field4) / 2) }}\n"
        f"  first-phase {{ expression: text{number} + fresh{number}({number}) + query(boost) }}\n"
        f"  second-phase {{ expression: firstPhase * log(2 + attribute(field3)) }}\n"
        f"  summary-features {{ bm25(field0) attribute(field1) text{number} }}\n }}"
    )


def deploy_zip(port: int, content: bytes) -> float:
    """Seconds that the deployment takes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    start = time.perf_counter()
    connection.request("POST", _DEPLOY, content, {"Content-Type": "application/zip"})
    answer = json.loads(connection.getresponse().read())
    seconds = time.perf_counter() - start
    connection.close()
    if not answer.get("activated"):
        raise AssertionError(f"not deployed: {answer}")
    return seconds


def config_port(server: Running) -> int:
    assert server.config_port is not None
    return server.config_port


def _size_mb(folder: Path) -> float:
    """What its files take on the disk; those that go away meanwhile count nothing."""
    blocks = 0
    for path in folder.rglob("*"):
        try:
            blocks += path.stat().st_blocks
        except FileNotFoundError:
            continue
    return blocks * 512 / 1e6


def _row(work: str, seconds: float, most: float) -> Row:
    return Row(work, f"{seconds:.2f} s", target=f"< {most:g} s", met=seconds < most)


def _growth(what: str, before_mb: float, growth_mb: float, most_mb: float) -> Row:
    shown = f"{before_mb:.0f} MB {growth_mb:+.1f} MB"
    work, target = f"{what} after a tenth of them, and its growth", f"< {most_mb} MB more"
    return Row(work, shown, target=target, met=growth_mb < most_mb)
