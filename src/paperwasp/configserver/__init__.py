"""The config server: application packages in, the active application out, over the Deploy API."""

from paperwasp.configserver.app import ConfigServerApp
from paperwasp.configserver.application_api import ContainerAddress
from paperwasp.configserver.server import EMPTY_MODEL, Activation, ConfigServer
from paperwasp.configserver.sessions import ApplicationId

__all__ = ["EMPTY_MODEL", "Activation", "ApplicationId", "ConfigServer", "ConfigServerApp", "ContainerAddress"]
