"""Application packages: from an archive or a folder to a checked model of the application."""

from paperwasp.application.changes import refused_changes
from paperwasp.application.directory import load_package, read_directory
from paperwasp.application.model import ApplicationModel, ContentCluster, build_model
from paperwasp.application.package import ApplicationPackage, read_package
from paperwasp.application.services import Container, Note

__all__ = [
    "ApplicationModel",
    "ApplicationPackage",
    "Container",
    "ContentCluster",
    "Note",
    "build_model",
    "load_package",
    "read_directory",
    "read_package",
    "refused_changes",
]
