"""services.xml before it is read: files are included, variants chosen, properties put in, in this order, as Vespa does.

Vespa: https://docs.vespa.ai/en/reference/applications/application-packages.html#preprocess-directives and
https://docs.vespa.ai/en/operations/deployment-variants.html
"""

from __future__ import annotations

from collections.abc import Mapping

from paperwasp.application.findings import Findings
from paperwasp.application.preprocessing.includes import with_includes
from paperwasp.application.preprocessing.properties import with_properties
from paperwasp.application.preprocessing.variants import DeployProperties, variant
from paperwasp.application.xml import Element

__all__ = ["DeployProperties", "preprocess"]


def preprocess(root: Element, files: Mapping[str, bytes], properties: DeployProperties, findings: Findings) -> Element:
    """The tree that a deployment with these properties sees. `files` are those of the package."""
    _check_prefixes(root, findings)
    included = with_includes(root, files, findings)
    return with_properties(variant(included, properties, findings), findings)


def _check_prefixes(root: Element, findings: Findings) -> None:
    """Checks that prefixes are declared around their use, as XML asks; directives are known by their usual prefixes."""
    declared = {name for name in root.attributes if name.startswith("xmlns:")}
    reported: set[str] = set()
    waiting = [root]
    while waiting:
        element = waiting.pop()
        for name in (element.tag, *element.attributes):
            prefix = name.partition(":")[0]
            known = {"deploy": "vespa", "preprocess": "properties"}.get(prefix)
            if ":" in name and known and f"xmlns:{prefix}" not in declared and prefix not in reported:
                reported.add(prefix)
                hint = f"xmlns:{prefix}=\"{known}\" is missing in '{root.tag}'"
                findings.error(f"The prefix '{prefix}' of '{name}' is not bound: {hint}", element.position)
        waiting.extend(child for child in reversed(element.children))
