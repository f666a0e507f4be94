"""Application packages: from an archive or a folder to a checked model of the application."""

from paperwasp.application.directory import load_package, read_directory
from paperwasp.application.model import ApplicationModel, ContentCluster, build_model
from paperwasp.application.package import ApplicationPackage, read_package
from paperwasp.application.services_model import Container

__all__ = [
    "ApplicationModel",
    "ApplicationPackage",
    "Container",
    "ContentCluster",
    "build_model",
    "load_package",
    "read_directory",
    "read_package",
]
