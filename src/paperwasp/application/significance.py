"""The significance models of a container: `significance` in `search` of services.xml, and the files that it names.

Vespa: https://docs.vespa.ai/en/reference/applications/services/search.html#significance
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from paperwasp.application.findings import Findings
from paperwasp.application.services_model import Container
from paperwasp.text.linguistics.significance import NO_MODELS, SignificanceModels


def significance_models(container: Container, files: Mapping[str, bytes]) -> SignificanceModels:
    """Reads the significance models of a container from its files, which were checked."""
    if not container.significance_models:
        return NO_MODELS
    return SignificanceModels.read(files[path] for path, _ in container.significance_models)


def check_significance(containers: Iterable[Container], files: Mapping[str, bytes], findings: Findings) -> None:
    """Finds models that are not there, or cannot be read."""
    for container in containers:
        for path, position in container.significance_models:
            if path not in files:
                findings.error(f"the significance model '{path}' is not in the application package", position)
                continue
            try:
                SignificanceModels.read([files[path]])
            except ValueError as error:
                findings.error(f"the significance model '{path}': {error}", position)
