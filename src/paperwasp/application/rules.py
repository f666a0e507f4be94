"""The rule bases of a package: the files in `rules`.

Vespa: https://docs.vespa.ai/en/linguistics/query-rewriting.html#configuration
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paperwasp import limits
from paperwasp.application.findings import Findings
from paperwasp.application.package import ApplicationPackage
from paperwasp.errors import Finding
from paperwasp.query.rules import NO_RULES, RuleBases, load_rules

_FOLDER: Final = "rules"


def read_rules(files: Mapping[str, bytes], findings: Findings) -> RuleBases:
    """The rule bases; none where one of them is wrong. What is below a folder of `rules` is reported, and not read."""
    texts: dict[str, str] = {}
    for path, content in ApplicationPackage(files).under(_FOLDER, ".sr"):
        if path.count("/") > 1:
            findings.warning(f"{path}: not read: rule bases are files in '{_FOLDER}' itself")
        elif len(content) > limits.LANGUAGE_TEXT_BYTES:
            findings.error(f"{path}: has {len(content)} bytes; at most {limits.LANGUAGE_TEXT_BYTES}")
        else:
            try:
                texts[path] = content.decode()
            except UnicodeDecodeError as error:
                findings.error(f"{path}: not UTF-8 at byte {error.start}")
    if not texts:
        return NO_RULES
    bases, found = load_rules(texts)
    findings.extend(found)
    if bases.default is None and bases.by_name and not any(one.level == "ERROR" for one in found):
        hint = f"no rule base in '{_FOLDER}' is marked @default: only queries with rules.rulebase are evaluated by one"
        findings.add(Finding(hint, level="INFO"))
    return bases
