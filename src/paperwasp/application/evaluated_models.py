"""The models that the containers with `model-evaluation` serve: those of the folder `models/`.

Vespa: https://docs.vespa.ai/en/ranking/stateless-model-evaluation.html#onnx-inference-options
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from paperwasp.application.findings import Findings
from paperwasp.application.model_evaluation.models import Models, default_settings, read_models
from paperwasp.application.services_model import Container, EvaluatedNetwork
from paperwasp.ranking.onnx.probe import probe
from paperwasp.ranking.onnx.session import SessionSettings

NO_MODELS: Final = Models()


def evaluated_models(container: Container, files: Mapping[str, bytes]) -> Models:
    """The models that a container serves, from its files, which were checked."""
    if not container.model_evaluation:
        return NO_MODELS
    return read_models(files, {network.name: _settings(network) for network in container.evaluated_networks})


def check_models(containers: Iterable[Container], files: Mapping[str, bytes], findings: Findings) -> None:
    """Finds files that are no models, and settings of models that there are not."""
    serving = [container for container in containers if container.model_evaluation]
    if not serving:
        return
    models = read_models(files, {}, probe)
    findings.extend(models.findings)
    for container in serving:
        for network in container.evaluated_networks:
            if network.name not in models.networks:
                known = ", ".join(models.networks)
                problem = f"Model '{network.name}' not found. Available ONNX models are: {known}."
                findings.warning(f"{problem} Skipping this configuration.", network.position)


def _settings(network: EvaluatedNetwork) -> SessionSettings:
    default = default_settings().intraop_threads
    is_parallel = network.execution_mode == "parallel"
    return SessionSettings(
        network.intraop_threads or default,
        network.interop_threads or (default if is_parallel else 1),
        is_parallel,
        network.gpu_device,
        optimizes=network.optimizes,
    )
