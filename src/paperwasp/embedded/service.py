"""paperwasp in this process: a service that is an object.

    with paperwasp.Service("my-application") as service:
        service.feed([{"id": "id:music:music::1", "fields": {"title": "Kind of Blue"}}])
        print(service.query("select * from music where title contains 'blue'").hits)

Requests go to the handlers that HTTP goes to, so answers are the same. No port is opened unless one is asked for.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from paperwasp.base.yielding import without_collections
from paperwasp.client.sources.operations import Kind
from paperwasp.client.sources.rows import RowOptions
from paperwasp.configserver import ApplicationId
from paperwasp.container.paths import DOCUMENT_ROOT
from paperwasp.document.ids import DocumentId
from paperwasp.embedded.calls import (
    IdDefaults,
    Named,
    Query,
    Read_co,
    ServiceCall,
    answer,
    answer_later,
    get_call,
    place_of,
    put_call,
    query_call,
    remove_call,
    update_call,
)
from paperwasp.embedded.feeding import FeedResult, Report, Window, feed, shown_progress
from paperwasp.embedded.lent_loop import Closed, LentLoop
from paperwasp.embedded.packages import Application, archive_of
from paperwasp.embedded.requests import Document
from paperwasp.embedded.results import Pages, QueryResult, Visit, walk_later
from paperwasp.embedded.sources import Source, fitted, operations_of
from paperwasp.embedded.temporary import TemporaryDirectory
from paperwasp.errors import Conflict, InvalidInput, NotFound
from paperwasp.http.messages import Request, Response
from paperwasp.server import process

if TYPE_CHECKING:
    from paperwasp.application.model import ApplicationModel
    from paperwasp.container.app import ContainerApp

_APPLICATION: Final = ApplicationId()
_HOST: Final = "127.0.0.1"


class Service:
    """A service in this process. Make it, use it from any thread, close it: best by `with`.

    Errors of all methods: those of the interface, as RequestFailed with its status; Closed after the end.
    """

    def __init__(
        self,
        application: Application | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        port: int | None = None,
        config_port: int | None = None,
        allow_python_components: bool = False,
    ) -> None:
        """Starts, and deploys `application` where one is given.

        `data_dir` keeps documents and applications; None: a temporary directory that goes with the process. `port` and
        `config_port` open ports on 127.0.0.1 for other clients, 0 any free one. Errors: what is wrong with the
        application; DataLocked where another process, or service, has the data directory; PortTaken.
        """
        has_ports = self._has_ports = port is not None or config_port is not None
        self._ending = threading.Lock()
        self._is_closed = False
        with without_collections(), ExitStack() as closing:
            if data_dir is None:
                temporary = TemporaryDirectory()
                closing.callback(temporary.close)
                data_dir = temporary.path
            self.data_dir: Final = Path(data_dir)
            settings = process.Settings(
                self.data_dir,
                _HOST if has_ports else None,
                (port or 0) if has_ports else 8080,
                (config_port or 0) if has_ports else 19071,
                allow_python_components=allow_python_components,
            )
            self._running = process.ServerProcess(settings)
            self.loop: Final = LentLoop()
            """Where requests run."""
            closing.callback(self.loop.close)
            self._window = Window(self.loop)
            self.loop.run(self._start)
            closing.callback(self._stop)
            if application is not None:
                self.deploy(application)
            self._closing = closing.pop_all()

    async def _start(self) -> None:
        self._running.start()

    def _stop(self) -> None:
        self.loop.begin_end()
        self.loop.run(self._running.stop)

    def close(self) -> None:
        """Ends the service. All that is acknowledged stays on disk, unless in a temporary directory, which goes. In a
        fork of the process, nothing ends: the service is the other process's."""
        with self._ending:
            if not self._is_closed:
                self._is_closed = True
                if not self.loop.is_copy:
                    self._closing.close()

    def __repr__(self) -> str:
        return f"<paperwasp.Service {'that has ended' if self._is_closed else 'in'} {self.data_dir}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> AsyncService:
        return AsyncService(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    # The application

    def deploy(self, application: Application) -> int:
        """Deploys an application package, the first one or a changed one; gives its generation.

        Errors: InvalidPackage with all that is wrong and where.
        """
        self._check_open()
        return self._running.deploy_archive(archive_of(application))

    def clear(self) -> None:
        """Forgets all documents, as if none had ever been fed: every score is that of a new service.

        Errors: NotFound where no application is deployed.
        """
        self._check_open()
        self._running.applications.clear(_APPLICATION)

    def undeploy(self) -> None:
        """Forgets the application with its documents, as if none had been deployed. Ports that were asked for stay.

        Errors: NotFound where no application is deployed.
        """
        self._check_open()
        self._running.config.deployments.delete_application(_APPLICATION)

    @property
    def schemas(self) -> tuple[str, ...]:
        """The document types of the application. Errors: NotFound where there is none."""
        return tuple(self._model().schemas)

    def _model(self) -> ApplicationModel:
        running = self.container().running
        assert running is not None
        return running.model

    @property
    def generation(self) -> int:
        """The generation of the application: each deployment has a greater one. Errors: NotFound."""
        running = self.container().running
        assert running is not None
        return running.generation

    @property
    def port(self) -> int:
        """Where other clients reach the container. Errors: Conflict where no port is open."""
        self._check_ports()
        return self._running.containers.front_port

    @property
    def config_port(self) -> int:
        """Where other clients reach the config server. Errors: Conflict where no port is open."""
        self._check_ports()
        return self._running.config_server.port

    @property
    def url(self) -> str:
        """The address of the container. Errors: Conflict where no port is open."""
        return f"http://{_HOST}:{self.port}"

    @property
    def config_url(self) -> str:
        """The address of the config server. Errors: Conflict where no port is open."""
        return f"http://{_HOST}:{self.config_port}"

    def _check_ports(self) -> None:
        if not self._has_ports:
            raise Conflict("The service has no ports: make it with port=0 for free ones, or with the ones you want")

    # Requests

    def request(self, request: Request, container: str | None = None) -> Response:
        """The answer to any request that HTTP could bring to a container cluster; None: the first one.

        Errors: NotFound where there is no such cluster, or no application.
        """
        return answer(self.loop, self.container(container), request)

    def _check_open(self) -> None:
        if self._is_closed:
            raise Closed("The service has ended")
        self.loop.refuse_copy()

    def container(self, cluster: str | None = None) -> ContainerApp:
        """Return the handler of requests to a container cluster; None: the first one. Errors: NotFound, Closed."""
        self._check_open()
        found = self._running.containers.app_of(str(_APPLICATION), cluster)
        if found is None:
            raise NotFound(f"There is no container cluster '{cluster}'" if cluster else "No application is deployed")
        return found

    def cluster_for(self, request: Request) -> str:
        """The first container cluster with the interface that a request is for. Errors: NotFound, InvalidInput."""
        return self._serving("document-api" if request.raw_path.startswith(DOCUMENT_ROOT) else "search")

    def _serving(self, interface: str) -> str:
        containers = self._model().containers
        member = interface.replace("-", "_")
        found = next((each.id for each in containers if getattr(each, member)), None)
        if found is None:
            names = " or ".join(f"'{each.id}'" for each in containers)
            raise InvalidInput(f"No container has <{interface}/>: add it to <container> {names} in services.xml")
        return found

    def ask(self, request: Request) -> Response:
        """The answer of the container cluster that has the interface for it. Errors: as `cluster_for`."""
        return self.request(request, self.cluster_for(request))

    def _ask(self, call: ServiceCall[Read_co]) -> Read_co:
        return call.read(self.ask(call.request))

    def query(self, query: Query = None, /, **parameters: object) -> QueryResult:
        """Searches. `query` is YQL, or words to search for, or a mapping of all parameters, which may have dots.

        Errors: RequestFailed for a query that is wrong; what is wrong with a part of an answer is in its `problems`.
        """
        return self._ask(query_call(query, parameters, self.query))

    def named(self, id: object, schema: str | None, namespace: str | None) -> Named:
        """The document with that id, whole or its last part. Errors: NotFound where there is no application."""
        return Named(id, self.schemas, schema, namespace)

    def get(
        self, id: object, *, schema: str | None = None, namespace: str | None = None, **options: object
    ) -> Document | None:
        """A document; None where there is none. `options` are those of the document API, as `fieldSet`."""
        return self._ask(get_call(self.named(id, schema, namespace), options))

    def put(
        self,
        id: object,
        fields: Mapping[str, object],
        *,
        schema: str | None = None,
        namespace: str | None = None,
        **options: object,
    ) -> None:
        """Writes a document, in place of the one with that id. `options`: `condition`, `create`, …"""
        self._ask(put_call(self.named(id, schema, namespace), fields, options))

    def update(
        self,
        id: object,
        fields: Mapping[str, object],
        *,
        schema: str | None = None,
        namespace: str | None = None,
        **options: object,
    ) -> None:
        """Changes fields of a document: `{"year": 1960}` or `{"year": {"increment": 1}}`. `options`: `create`, …"""
        self._ask(update_call(self.named(id, schema, namespace), fields, options))

    def remove(self, id: object, *, schema: str | None = None, namespace: str | None = None, **options: object) -> None:
        """Removes a document, if it is there. `options`: `condition`, …"""
        self._ask(remove_call(self.named(id, schema, namespace), options))

    def feed(
        self,
        source: Source,
        *,
        schema: str | None = None,
        namespace: str | None = None,
        id: str | None = None,
        columns: Mapping[str, str] | None = None,
        operation: Kind = "put",
        report: Report | None = None,
        progress: bool = False,
    ) -> FeedResult:
        """Feeds many documents, and waits until all are searchable.

        `source`: rows, operations of Vespa's feed format, a frame of pandas or polars, an Arrow table, or a file by its
        path (JSON, JSONL, CSV, Parquet, Arrow). `id` is the column of ids, or a text with columns in braces; `columns`
        names fields otherwise than their columns, or leaves columns out (`""`). `progress` shows a bar, and `report` is
        called with the result so far. What a document is refused for is in the result. Errors: InvalidInput for a
        column of a table that is no field, and for a package without <document-api/>, before anything is fed, and for a
        row that cannot be read, after those before it are fed.
        """
        container = self.container(self._serving("document-api"))
        names = self._schema_of_rows(schema), namespace, id, columns or {}
        options = RowOptions(*names, operation=operation, in_python=True)
        source = fitted(source, options, self._field_types(options.document_type))
        read = partial(operations_of, source, options, self._type_of)
        if not progress:
            return feed(self.loop, self._window, container, read, report)
        with shown_progress(source, report) as shown:
            return feed(self.loop, self._window, container, read, shown)

    def _type_of(self, document_id: DocumentId, name: str) -> str:
        """The type of a field; "" of one that is not there."""
        return (self._field_types(document_id.document_type) or {}).get(name, "")

    def _field_types(self, schema: str | None) -> Mapping[str, str] | None:
        """The types of a document's fields by name; None where the document type is not known."""
        if schema is None or schema not in self._model().schemas:
            return None
        return {name: kind.name for name, kind in self._model().schemas[schema].document.fields.items()}

    def _schema_of_rows(self, named: str | None) -> str | None:
        """The document type of rows that do not say theirs; None: there are several. Errors: InvalidInput."""
        place = place_of(self.schemas, named, None)
        return place.schema if isinstance(place, IdDefaults) else None

    def visit(self, schema: str | None = None, **options: object) -> Visit:
        """All documents, or those of one schema. `options` are those of the document API: `selection`, `fieldSet`, …"""
        return Visit(self.pages(schema, options), self.ask)

    def pages(self, schema: str | None, options: Mapping[str, object]) -> Pages:
        """The pages of a visit. Errors: NotFound where there is no application; InvalidInput."""
        model = self._model()
        if schema is not None:
            place_of(tuple(model.schemas), schema, None)
        return Pages(schema, [cluster.id for cluster in model.content_clusters], options)


class AsyncService:
    """The methods of `Service` as coroutines: `async with paperwasp.Service(…) as service`. Errors: as there."""

    def __init__(self, service: Service) -> None:
        self.blocking = service
        """The same service, for threads."""

    async def deploy(self, application: Application) -> int:
        """Deploys an application package; gives its generation."""
        return await asyncio.to_thread(self.blocking.deploy, application)

    async def clear(self) -> None:
        """Forgets all documents."""
        await asyncio.to_thread(self.blocking.clear)

    async def request(self, request: Request, container: str | None = None) -> Response:
        """The answer to any request that HTTP could bring to a container cluster; None: the first one."""
        return await answer_later(self.blocking.loop, self.blocking.container(container), request)

    async def ask(self, request: Request) -> Response:
        """The answer of the container cluster that has the interface for it."""
        return await self.request(request, self.blocking.cluster_for(request))

    async def _ask(self, call: ServiceCall[Read_co]) -> Read_co:
        return call.read(await self.ask(call.request))

    async def query(self, query: Query = None, /, **parameters: object) -> QueryResult:
        """Searches."""
        return await self._ask(query_call(query, parameters, self.blocking.query))

    async def get(
        self, id: object, *, schema: str | None = None, namespace: str | None = None, **options: object
    ) -> Document | None:
        """A document; None where there is none."""
        return await self._ask(get_call(self.blocking.named(id, schema, namespace), options))

    async def put(
        self,
        id: object,
        fields: Mapping[str, object],
        *,
        schema: str | None = None,
        namespace: str | None = None,
        **options: object,
    ) -> None:
        """Writes a document."""
        await self._ask(put_call(self.blocking.named(id, schema, namespace), fields, options))

    async def update(
        self,
        id: object,
        fields: Mapping[str, object],
        *,
        schema: str | None = None,
        namespace: str | None = None,
        **options: object,
    ) -> None:
        """Changes fields of a document."""
        await self._ask(update_call(self.blocking.named(id, schema, namespace), fields, options))

    async def remove(
        self, id: object, *, schema: str | None = None, namespace: str | None = None, **options: object
    ) -> None:
        """Removes a document, if it is there."""
        await self._ask(remove_call(self.blocking.named(id, schema, namespace), options))

    async def feed(self, source: Source, **options: Any) -> FeedResult:
        """Feeds many documents on a thread, and waits until all are searchable."""
        return await asyncio.to_thread(self.blocking.feed, source, **options)

    def visit(self, schema: str | None = None, **options: object) -> AsyncIterator[Document]:
        """All documents, or those of one schema."""
        return walk_later(self.blocking.pages(schema, options), self.ask)
