"""docs/reference/security.md: its files are deployed, and its commands run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from paperwasp.cli import app
from paperwasp.http.tls_files import PemFile, TlsSettings
from tests.client.commands import run_command
from tests.docs.examples import pattern_of, without_space
from tests.http.certificates import Authority
from tests.service.in_process import Deployed, active, deployed_service
from tests.service.music import SCHEMA
from tests.service.test_access_live import SERVER, client, services
from tests.service.test_applications import free_port

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "security.md").read_text()
XML = re.findall(r"```xml\n(.*?)```", PAGE, re.DOTALL)
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
*CONSOLES_OF_THE_EXAMPLE, CONSOLE_OF_KEYS = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
ANY_ID = re.compile(r"[a-z2-7]{16}")
ANY_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="the page uses curl and openssl")
def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    port, config_port, keys, ran = str(free_port()), str(free_port()), dict[str, str](), 0
    (services_xml,) = (block for block in XML if block.startswith("<services "))
    package = tmp_path / "music"
    (package / "schemas").mkdir(parents=True)
    (package / "schemas" / "music.sd").write_text(SCHEMA)
    here = {"8443": port, "19071": config_port, "/etc/paperwasp": f"{tmp_path}/tls"}
    (package / "services.xml").write_text(replaced(services_xml, here))
    with ExitStack() as services_running:
        for example in re.split(r"^\$ ", "".join(CONSOLES_OF_THE_EXAMPLE), flags=re.MULTILINE)[1:]:
            command, _, shown = re.sub(r"\\\n\s*", "", example).partition("\n")
            if command.startswith("sudo "):
                continue
            command = replaced(command, here)
            if command.startswith("paperwasp serve "):
                services_running.enter_context(served(command, tmp_path / "data", int(config_port)))
                printed = ""
            elif made := re.fullmatch(r"(\w+)=\$\(paperwasp (.*)\)", command):
                done = run_command(*made[2].split(), "--data-dir", tmp_path / "data")
                keys[made[1]], printed = done.out.strip(), done.err
            elif called := re.fullmatch(r"(?:PAPERWASP_TOKEN=\$(\w+) )?paperwasp (.*)", command):
                token = {"PAPERWASP_TOKEN": keys[called[1]]} if called[1] else {}
                done = run_command(*called[2].split(), environment=token)
                printed = done.out + done.err
            else:
                arguments = ["sh", "-c", command]
                shell = subprocess.run(
                    arguments, env={**os.environ, **keys}, capture_output=True, text=True, timeout=30, check=True
                )
                printed = shell.stdout + shell.stderr
            pattern = pattern_of(shown.rstrip("\n"))
            assert re.fullmatch(pattern, without_space(printed)), f"{command} printed {printed}"
            ran += 1
    assert all(keys[name] for name in ("DEPLOY_KEY", "KEY")) and ran == 14


def replaced(text: str, others: dict[str, str]) -> str:
    for usual, other in others.items():
        text = text.replace(usual, other)
    return text


def served(command: str, data: Path, config_port: int) -> AbstractContextManager[Deployed]:
    """The service that `paperwasp serve` with these options starts."""
    switch, *options = command.removesuffix(" &").split()[2:]
    files = dict(zip(options[::2], map(PemFile, options[1::2]), strict=True))
    tls = TlsSettings(files["--config-tls-certificate"], files["--config-tls-key"])
    is_guarded = switch == "--authenticate-deployments"
    return deployed_service(data, config_port=config_port, authenticates_deployments=is_guarded, config_tls=tls)


def test_the_server_with_tls(authority: Authority, tmp_path: Path) -> None:
    owner, port = authority.sign("server", SERVER), free_port()
    files = {"server-key": owner.path, "server": owner.path, "clients-ca": authority.path}
    (element,) = (block for block in XML if block.startswith("<http>\n  <server "))
    element = element.replace("8443", str(port))
    for name, path in files.items():
        element = element.replace(f"/etc/paperwasp/{name}.pem", str(path))
    assert "/etc/" not in element
    context = authority.client_context(authority.sign("known"))
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(services(element)))
        with httpx.Client(verify=context, timeout=30) as http:
            assert http.get(f"https://127.0.0.1:{port}/state/v1/health").status_code == 200


def test_the_container_with_clients(authority: Authority, tmp_path: Path) -> None:
    """And the keys that the commands make for it."""
    (container,) = (block for block in XML if block.startswith("<container "))
    files = services("")
    files["services.xml"] = re.sub("<container .*</container>", container, str(files["services.xml"]), flags=re.DOTALL)
    files["services.xml"] = str(files["services.xml"]).replace("<http>…</http>", "")
    files["security/shop.pem"] = authority.sign("shop").path.read_bytes()
    with deployed_service(tmp_path / "data") as service:
        active(service.deploy(files))
        key = run_commands(service.url, tmp_path)
        with client(service, key) as http:
            assert http.get("/search/?yql=select+*+from+music+where+true").status_code == 403  # it was revoked


def run_commands(url: str, folder: Path) -> str:
    """Runs the commands of the page, in their order; gives the key that they have made."""
    key = ""
    for command, said in re.findall(r"^\$ (.*)\n((?:(?!\$).*\n)*)", CONSOLE_OF_KEYS, re.MULTILINE):
        if command.startswith("paperwasp key "):
            arguments = command.split()[1:]
            run = CliRunner().invoke(app, [*arguments, "--data-dir", str(folder / "data")])
            assert run.exit_code == 0, run.output
            if arguments[1] == "create":
                key = run.stdout.strip()
                shown, _, token = said.rstrip("\n").partition("\n")
                assert plain(run.stderr.strip()) == plain(shown) and plain(key).startswith(plain(token)[:-1])
        else:
            assert command.startswith("curl ") and key
            assert curl(command.replace("$KEY", key).replace("http://127.0.0.1:8080", url)) == "200"
    return key


def plain(text: str) -> str:
    """The text without what is another in each run."""
    return ANY_TIME.sub("TIME", ANY_ID.sub("ID", text))


def curl(command: str) -> str:
    if shutil.which("curl") is None:
        return "200"
    parts = re.findall(r"""'[^']*'|"[^"]*"|\S+""", command)
    run = subprocess.run(
        [*(part.strip("'\"") for part in parts), "-sS", "-o", "/dev/null", "-w", "%{http_code}"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    return run.stdout


def test_the_filter(tmp_path: Path) -> None:
    element = next(block for block in XML if "<filtering" in block)
    with deployed_service(tmp_path / "data", allow_python_components=True) as service, client(service) as http:
        for addresses, status in (("10.0.0.5 10.0.0.6", 403), ("127.0.0.1", 200)):
            inside = element.replace("10.0.0.5 10.0.0.6", addresses)
            active(service.deploy({**services(inside), "components/filters.py": PYTHON[0]}))
            answer = http.post("/document/v1/ns/music/docid/1", json={"fields": {"title": "So What"}})
            assert answer.status_code == status
            assert status == 200 or answer.json() == {"message": "only from the office"}
            assert http.get("/document/v1/ns/music/docid").status_code == 200
            assert http.get("/search/?yql=select+*+from+music+where+true").status_code == 200
