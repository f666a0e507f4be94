"""The config server: takes packages, makes them sessions, and says which applications the service runs.

Nothing here knows HTTP. It has parts, and a caller is given those that it needs:

    sessions      tenants and sessions, as the config store keeps them        (`repository`)
    packages      the files of a session                                      (`models`)
    deployments   the steps of a deployment: create, edit, prepare, activate  (`deployments`)
    applications  what runs                                                   (`running`)
    reindexing    which documents are indexed again                           (`reindexing_control`)
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from paperwasp.base.env import SYSTEM, Environment
from paperwasp.cluster.config_store import ConfigStore
from paperwasp.configserver.activations import Activate, Activations
from paperwasp.configserver.deployments import Deployments
from paperwasp.configserver.models import BuildModel, Models, Packages
from paperwasp.configserver.preparation import Check, Preparation
from paperwasp.configserver.reindexer import ReindexChunk, Reindexer, no_chunks
from paperwasp.configserver.reindexing import ReindexingRepository
from paperwasp.configserver.reindexing_control import ReindexingControl
from paperwasp.configserver.repository import SessionRepository
from paperwasp.configserver.running import RunningApplications
from paperwasp.errors import Conflict, InvalidInput

_log = logging.getLogger(__name__)


class ConfigServer:
    """The parts of the config server, put together; it starts and stops them.

    `build_model` makes a package a model or raises InvalidPackage. `activate` reconfigures the service in this
    process for one application (see `activations`). `reindex_chunk` has a content cluster index documents again (see
    `reindexer`).
    """

    def __init__(
        self,
        store: ConfigStore,
        build_model: BuildModel,
        activate: Activate,
        *,
        check: Check = lambda application, model: None,
        reindex_chunk: ReindexChunk = no_chunks,
        scratch: Path | None = None,
        environment: Environment = SYSTEM,
    ) -> None:
        """`check` raises where this process could not run that model of the application now; it changes nothing.
        `scratch`: the folder on whose disk large files of packages are kept; None: in memory."""
        repository = ReindexingRepository(store)
        self.sessions: Final = SessionRepository(store)
        self.packages: Final = Packages(self.sessions, scratch)
        self.applications: Final = RunningApplications()
        self._reindexer = Reindexer(repository, self.applications.models, reindex_chunk, environment)
        self.reindexing: Final = ReindexingControl(repository, self.applications, self._reindexer.wake, environment)
        models = Models(build_model, environment)
        preparation = Preparation(self.sessions, self.packages, models, self.applications, check, environment)
        self._activations = Activations(
            self.sessions, preparation, self.applications, self.reindexing, activate, environment
        )
        self.deployments: Final = Deployments(
            self.sessions, self.packages, self.applications, preparation, self._activations, environment
        )

    def restore(self) -> None:
        """Brings back all that was active before the restart, oldest generation first. Call once, before serving.

        An application whose package or ports are in its way is left out: others serve, and it can be deployed again.
        Errors: whatever else activating one raises, since damaged data and full disks are for a person to mend first.
        """
        self.sessions.check_complete()
        self.sessions.sweep()
        for active in self.sessions.all_active():
            try:
                self._activations.restore(active)
            except (InvalidInput, Conflict) as error:
                if active.session_id is None:
                    raise
                _log.error("Application %s could not be restored: %s", active.application, error.message)
                self.applications.leave_out(active.application, active.generation, error.message)

    def start(self) -> None:
        """Begins to reindex what is to be."""
        self._reindexer.start()

    def close(self) -> None:
        """Ends reindexing, after the chunk that is under way; deployments that wait for their turn give up."""
        self.deployments.close()
        self._reindexer.stop()
