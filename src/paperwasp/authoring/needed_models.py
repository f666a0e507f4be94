"""The models that the components of a package name: one for each element with a `path`, a `url` or a `model-id`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from posixpath import normpath
from typing import Final

from msgspec import Struct

from paperwasp.application.findings import Findings
from paperwasp.application.package import ApplicationPackage
from paperwasp.application.package_files import HOSTS_FILE, Hosts, looked_at, parse_hosts
from paperwasp.application.preprocess import DeployProperties
from paperwasp.application.services import parse_services
from paperwasp.components.embedders.model_files import MODEL_ATTRIBUTES, PATH, reference_of
from paperwasp.errors import InvalidPackage
from paperwasp.schema.files import Component

_SETTINGS: Final = tuple(f"@{attribute}" for attribute in MODEL_ATTRIBUTES)


class NeededModel(Struct, frozen=True):
    """A model that a component needs."""

    component: str
    setting: str
    """The element that names it, such as `transformer-model`."""
    attribute: str
    """`path`, `url` or `model-id`."""
    name: str
    """The value of the attribute."""
    is_in_package: bool
    """Of a `path`: whether the package has the file. Others are in the cache, or not."""


def needed_models(package: ApplicationPackage) -> tuple[NeededModel, ...]:
    """The models that the package names, in the order of services.xml. Errors: InvalidPackage."""
    findings = Findings()
    files = looked_at(package.files)
    hosts = parse_hosts(files[HOSTS_FILE], findings) if HOSTS_FILE in files else Hosts()
    services = parse_services(files, hosts, DeployProperties(), findings)
    found = [model for each in services.components for model in _models_of(each, files)]
    if not found and findings.errors:
        raise InvalidPackage(f"services.xml cannot be read: {findings.errors[0].message}", findings.errors)
    return tuple(dict.fromkeys(found))


def _models_of(component: Component, files: Mapping[str, bytes]) -> Iterator[NeededModel]:
    elements = dict.fromkeys(path.rpartition("@")[0] for path in component.settings if path.endswith(_SETTINGS))
    for element in elements:
        given = {name: component.settings.get(f"{element}@{name}", "") for name in MODEL_ATTRIBUTES}
        reference = reference_of(given)
        if reference is not None:
            attribute, name = reference
            setting = element.partition("#")[0]
            yield NeededModel(component.id, setting, attribute, name, attribute == PATH and normpath(name) in files)
