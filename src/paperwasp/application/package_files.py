"""The files of a package beside services.xml and the schemas: which folder may hold what, and what is made of it.

A file of another kind than its folder is for is not read, and is warned of, as a Vespa that is not hosted does
(SessionRepository.validateFileExtensions).

Vespa: https://docs.vespa.ai/en/reference/applications/application-packages.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from paperwasp.application.elements import RULES
from paperwasp.application.findings import Findings
from paperwasp.application.grammar import GrammarCheck
from paperwasp.application.xml import Element, parse_xml
from paperwasp.base.file_contents import FileContents, held_contents
from paperwasp.errors import Finding, LanguageError
from paperwasp.text.parsing.tokens import did_you_mean

# hosts.xml: which host each alias of services.xml stands for. Everything runs on this one all the same.
#
# Vespa: https://docs.vespa.ai/en/reference/applications/hosts.html


HOSTS_FILE: Final = "hosts.xml"
LOCALHOST: Final = "localhost"


class Hosts:
    """Alias → host. Where there is no hosts.xml every alias is this host."""

    def __init__(self, aliases: Mapping[str, str] | None = None) -> None:
        self._aliases = aliases

    def host(self, alias: str) -> str:
        return self._aliases.get(alias, LOCALHOST) if self._aliases else LOCALHOST

    def check(self, root: Element, findings: Findings) -> None:
        """Tells every `hostalias` in services.xml that stands for no host."""
        if self._aliases is None:
            return
        waiting = [root]
        while waiting:
            element = waiting.pop()
            alias = element.attributes.get("hostalias")
            if alias is not None and alias not in self._aliases:
                hint = did_you_mean(alias, self._aliases) if findings.has_room else ""
                findings.error(f"Alias '{alias}' is not in {HOSTS_FILE}{hint}", element.position)
            waiting.extend(reversed(element.children))


def parse_hosts(content: bytes, findings: Findings) -> Hosts:
    """The hosts of a package. What is wrong with the file is reported; then no alias is checked."""
    errors_before = findings.error_count
    try:
        root = parse_xml(content, HOSTS_FILE)
    except LanguageError as error:
        findings.problem(error)
        return Hosts()
    if root.tag != "hosts":
        findings.error(f"element '{root.tag}' not allowed here; expected element 'hosts'", root.position)
        return Hosts()
    GrammarCheck(findings).check(root, RULES["hosts"])
    aliases = _aliases(root, findings)
    return Hosts(aliases if findings.error_count == errors_before else None)


def _aliases(root: Element, findings: Findings) -> Mapping[str, str]:
    aliases: dict[str, str] = {}
    names: set[str] = set()
    for host in root.all("host"):
        name = host.attributes.get("name", "")
        if not name and "name" in host.attributes:
            findings.error("attribute 'name' of 'host' is empty", host.position)
        elif name and name in names:
            findings.error(f"Host '{name}' is there more than once", host.position)
        elif name and host.first("alias") is None:
            findings.error(f"No host aliases defined for host '{name}'", host.position)
        names.add(name)
        for alias in host.all("alias"):
            if alias.text in aliases:
                findings.error(f"Alias '{alias.text}' is there more than once", alias.position)
            aliases.setdefault(alias.text, name)
    return aliases


EXTENSIONS: Final = "ext/"
"""The folder that is never looked at, whatever is in it."""
_DEPLOYMENT_FILE: Final = "deployment.xml"


class _Folder(Struct, frozen=True):
    """The suffixes of files that may be in a folder, and the finding that each of them gives, if any."""

    suffixes: tuple[str, ...]
    level: Literal["ERROR", "WARNING"] | None = None
    message: str = ""


_SCHEMAS: Final = _Folder((".sd", ".expression", ".profile"))
_XML: Final = _Folder((".xml",))
_FOLDERS: Final[Mapping[str, _Folder]] = {
    "components": _Folder((".jar",), "ERROR", "there is no Java here to run components"),
    "constants": _Folder((".json", ".json.lz4", ".tbf")),
    "docproc/chains": _XML,
    "page-templates": _Folder((".xml",), "WARNING", "page templates are not executed yet"),
    "processing/chains": _XML,
    "routing/tables": _Folder((".xml",), "WARNING", "routing is not executed yet"),
    "rules": _Folder((".sr",)),
    "schemas": _SCHEMAS,
    "search/chains": _XML,
    "search/query-profiles": _XML,
    "searchdefinitions": _SCHEMAS,
    "security": _Folder((".pem",)),
}
"""Folder → what it is for. Folders that are not here, `models` and `files` among them, may hold anything."""
_PROFILE_FOLDERS: Final = ("schemas/", "searchdefinitions/")
_UNHEEDED_SUFFIXES: Final = (".gitignore", ".DS_Store")


def looked_at(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The files without those that a package may have for itself."""
    held = held_contents(files).items()
    return FileContents({path: content for path, content in held if not path.startswith(EXTENSIONS)})


def is_schema_file(path: str) -> bool:
    """Return whether Vespa reads the file as a schema: it is directly in the folder of schemas, and not hidden."""
    return path.endswith(".sd") and path.count("/") == 1 and "/." not in path


def check_files(files: Mapping[str, bytes], findings: Findings) -> None:
    """Tells which files are where they cannot be, cannot work here, or are not executed yet."""
    for path in sorted(files):
        folder = _folder_of(path)
        is_python = path.startswith("components/") and path.endswith(".py")
        if folder is None or is_python or path.endswith(_UNHEEDED_SUFFIXES):
            continue
        if not path.endswith(folder.suffixes):
            problem = "File in application package with unknown extension"
            findings.warning(f"{problem}: {path}, please delete or move file to another directory.")
        elif folder.level is not None:
            findings.add(Finding(f"{path}: {folder.message}", level=folder.level))
    if _DEPLOYMENT_FILE in files:
        _check_deployment(files[_DEPLOYMENT_FILE], findings)


def _folder_of(path: str) -> _Folder | None:
    """The innermost folder with a rule that the path is below."""
    if path.startswith(_PROFILE_FOLDERS) and path.count("/") > 1:
        return _Folder((".profile",))
    folder = path.rpartition("/")[0]
    while folder:
        if folder in _FOLDERS:
            return _FOLDERS[folder]
        folder = folder.rpartition("/")[0]
    return None


def _check_deployment(content: bytes, findings: Findings) -> None:
    try:
        root = parse_xml(content, _DEPLOYMENT_FILE)
    except LanguageError as error:
        findings.problem(error)
        return
    if root.tag != "deployment":
        findings.error(f"element '{root.tag}' not allowed here; expected element 'deployment'", root.position)
        return
    GrammarCheck(findings).check(root, RULES["deployment"])
    if root.children:
        findings.info(f"{_DEPLOYMENT_FILE} has no effect: there is one place to deploy to")
