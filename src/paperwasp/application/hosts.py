"""hosts.xml: which host each alias of services.xml stands for. Everything runs on this one all the same.

Vespa: https://docs.vespa.ai/en/reference/applications/hosts.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paperwasp.application.findings import Findings
from paperwasp.application.grammar_check import GrammarCheck
from paperwasp.application.tables import RULES
from paperwasp.application.xml import Element, parse_xml
from paperwasp.errors import LanguageError
from paperwasp.text.parsing.nearest import did_you_mean

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
