"""The Dockerfile, line by line: what it copies is there, and what the image runs runs."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.service.running import command, running_service

ROOT = Path(__file__).parents[2]
DATA = "/var/lib/paperwasp"


def stages() -> list[list[tuple[str, str]]]:
    """(instruction, rest) of every line, by stage; what is before the first stage is left out."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line.partition(" ") for line in text.splitlines() if line and not line.startswith("#")]
    found: list[list[tuple[str, str]]] = []
    for name, _, rest in lines:
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append((name, rest.strip()))
    return found


def the(stage: list[tuple[str, str]], name: str) -> str:
    (rest,) = [rest for instruction, rest in stage if instruction == name]
    return rest


def ignored(path: str) -> bool:
    """By .dockerignore, whose last pattern that fits counts."""
    result = False
    for line in (ROOT / ".dockerignore").read_text().split():
        pattern = line.removeprefix("!").removeprefix("**/")
        if fnmatch(path, pattern) or path.startswith(pattern + "/") or fnmatch(path.rpartition("/")[2], pattern):
            result = not line.startswith("!")
    return result


def test_all_that_the_build_needs_is_copied() -> None:
    build, _ = stages()
    copied = [source for name, rest in build if name == "COPY" for source in rest.split()[:-1]]
    for source in copied:
        assert (ROOT / source).exists(), source
        assert not ignored(source), source
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = [project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml", "CMakeLists.txt"]
    needed += [
        f"{folder}/{project['build-system']['build-backend']}.py" for folder in project["build-system"]["backend-path"]
    ]
    needed += [f"{wheel}/x.py" for wheel in project["tool"]["scikit-build"]["wheel"]["packages"]]
    for path in needed:
        assert any(path == source or path.startswith(source + "/") for source in copied), path
    assert all(ignored(path) for path in (".git", "tests", "bench", "src/paperwasp/core/__pycache__", "x.so"))


def test_the_image_runs_as_nobody_in_particular() -> None:
    build, image = stages()
    assert the(image, "USER") == "10001:10001"
    names = [name for name, _ in image]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert the(image, "VOLUME") == the(image, "WORKDIR") == DATA
    assert the(image, "EXPOSE").split() == ["8080", "19071"]
    assert the(image, "STOPSIGNAL") == "SIGTERM"
    assert f"--owner 10001 --group 10001 --mode 0750 {DATA}" in the(image, "RUN")
    assert "COPY" in names and "--from=build /opt/paperwasp /opt/paperwasp" in the(image, "COPY")
    assert "python:${PYTHON}-slim" == the(image, "FROM") == the(build, "FROM").removesuffix(" AS build")


def test_what_the_image_runs_and_how_its_health_is_checked(tmp_path: Path) -> None:
    _, image = stages()
    entry, arguments = json.loads(the(image, "ENTRYPOINT")), json.loads(the(image, "CMD"))
    assert entry == ["paperwasp"]
    assert arguments == ["serve", "--host", "0.0.0.0", "--data-dir", DATA]
    check = json.loads(the(image, "HEALTHCHECK").partition("CMD ")[2])
    assert check[:2] == ["python", "-c"]
    assert [*command(tmp_path)[3:4]] == arguments[:1]
    with running_service(tmp_path / "data") as service:
        port = str(urlsplit(service.config_url).port)
        program = check[2].replace("19071", port)
        assert program != check[2]
        assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
        assert service.stop(signal.SIGTERM) == 0
    assert subprocess.run([sys.executable, "-c", program], stderr=subprocess.DEVNULL, timeout=60).returncode != 0


def test_the_lines_of_the_documentation_name_what_the_image_has() -> None:
    page = (ROOT / "docs" / "reference" / "operations.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("docker run")]
    assert lines
    for line in lines:
        assert f":{DATA}" in line or line.endswith("paperwasp backup /backups/music.tar.zst")
        assert set(re.findall(r"-p [\d.:]*:(\d+)", line)) <= {"8080", "19071"}


def has_docker() -> bool:
    docker = shutil.which("docker")
    return docker is not None and subprocess.run([docker, "info"], capture_output=True, timeout=60).returncode == 0


@pytest.mark.skipif(not has_docker(), reason="there is no docker")
def test_the_image_is_built_and_answers() -> None:
    built = subprocess.run(["docker", "build", "--quiet", str(ROOT)], capture_output=True, text=True, timeout=3600)
    assert built.returncode == 0, built.stderr
    image = built.stdout.strip()
    shown = subprocess.run(["docker", "run", "--rm", image, "--version"], capture_output=True, text=True, timeout=300)
    assert shown.stdout.startswith("paperwasp ")
