"""The config server: application packages in, the active applications out, over the Deploy API."""

from paperwasp.configserver.app import ConfigServerApp
from paperwasp.configserver.config_server import ConfigServer
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.logs import ServiceLog
from paperwasp.configserver.preparation import BuildModel, Prepared, PrepareOptions
from paperwasp.configserver.reindexer import ReindexChunk, ReindexedChunk
from paperwasp.configserver.repository import ApplicationId
from paperwasp.configserver.running import Activation
from paperwasp.configserver.service_addresses import Restart, ServiceAddress

__all__ = [
    "Activation",
    "ApplicationId",
    "BuildModel",
    "ConfigServer",
    "ConfigServerApp",
    "Deadline",
    "PrepareOptions",
    "Prepared",
    "ReindexChunk",
    "ReindexedChunk",
    "Restart",
    "ServiceAddress",
    "ServiceLog",
]
