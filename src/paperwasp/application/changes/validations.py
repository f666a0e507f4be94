"""The validations of Vespa, by the ids that `validation-overrides.xml` names.

Vespa: https://docs.vespa.ai/en/reference/applications/validation-overrides.html
"""

from __future__ import annotations

from typing import Final

VALIDATIONS: Final[dict[str, str]] = {
    "access-control": "Zones without access control",
    "certificate-removal": "Removal of data plane certificates",
    "cluster-size-reduction": "Large reductions of a cluster's size",
    "config-model-version-mismatch": "Models of another version",
    "content-cluster-removal": "Removal, or another id, of a content cluster",
    "data-plane-token-removal": "Removal of data plane tokens",
    "deployment-removal": "Removal of production zones",
    "field-type-change": "Changed types of fields",
    "global-document-change": "Document types that become global, or cease to be",
    "global-endpoint-change": "Changed global endpoints",
    "hnsw-settings-change": "Changed settings of an hnsw index",
    "indexing-change": "Changed tokens or values in the indexes and attributes of fields",
    "indexing-mode-change": "Changed mode (index, streaming, store-only) of documents",
    "paged-setting-removal": "Removal of paged from an attribute",
    "redundancy-increase": "More copies of all documents",
    "redundancy-one": "A single copy of all documents",
    "resources-reduction": "Large reductions of the resources of nodes",
    "schema-removal": "Removal of a schema with all its documents",
    "skip-old-config-models": "Only the newest model is built",
    "tensor-type-change": "Changed types of tensors; now field-type-change",
    "zone-endpoint-change": "Changed endpoints of zones",
}
"""Validation id → what an override of that id allows. All that Vespa knows; not all can be found here."""
