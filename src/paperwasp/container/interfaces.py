"""The interfaces of a container for applications: all that it imports only for one.

`container.app` imports this module with the first application that it serves, or with the first request for one of
these interfaces that comes before: the code of both is most of the service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from paperwasp.application.model_evaluation.models import NO_MODELS, evaluated_models
from paperwasp.application.significance import significance_models
from paperwasp.base.env import Environment
from paperwasp.base.measurements import Metric, gauge
from paperwasp.base.records import replace
from paperwasp.components.embedders.registry import load_models
from paperwasp.components.registry import components_in, files_of
from paperwasp.container.content_metrics import ContentMetrics
from paperwasp.container.document.request import ROOT as DOCUMENT_ROOT
from paperwasp.container.document.v1 import DocumentApi
from paperwasp.container.document.v1 import error_response as document_error
from paperwasp.container.model_evaluation import EvaluationHandler, is_model_evaluation
from paperwasp.container.model_evaluation import error_response as evaluation_error
from paperwasp.container.search.config import QueryLimits
from paperwasp.container.search.handler import ClusterConfig, SearchConfig, SearchHandler
from paperwasp.container.search.rendering import SearchError, SearchResult, accepted_format, respond
from paperwasp.container.state import Running
from paperwasp.coordination.messenger import Messenger
from paperwasp.errors import PaperwaspError
from paperwasp.http.cbor import error_as_accepted
from paperwasp.http.messages import Request, Response


class Interfaces:
    """Answers the requests for documents, searches and models of one container cluster."""

    def __init__(
        self,
        messenger: Messenger,
        address_of: Callable[[str], str],
        environment: Environment,
        absence: Callable[[], str],
    ) -> None:
        """`address_of` gives the address of a content cluster of the application. `absence`: what to say where none is
        served."""
        self.documents = DocumentApi(messenger, address_of, absence=absence)
        self.search = SearchHandler(messenger, environment=environment, address_of=address_of)
        self.evaluation = EvaluationHandler()
        self.content_metrics = ContentMetrics(messenger, address_of)

    def metrics(self) -> Iterator[Metric]:
        """The metrics of queues and caches."""
        queue, cache = self.documents.queue, self.search.cache
        yield gauge("httpapi_queued_operations", len(queue))
        yield gauge("httpapi_queued_bytes", queue.size_bytes)
        yield gauge("inference.pending", self.evaluation.runs.count)
        for threads in (self.documents.embedding, self.search.embedding):
            yield gauge("jdisc.thread_pool.size", threads.size, threadpool=threads.name)
            yield gauge("jdisc.thread_pool.work_queue.size", threads.undone(), threadpool=threads.name)
        yield gauge("paperwasp.search_cache.lookups", cache.lookups)
        yield gauge("paperwasp.search_cache.hits", cache.hits)
        yield gauge("paperwasp.search_cache.elements", len(cache))
        yield gauge("paperwasp.search_cache.memory_usage", cache.size_bytes)
        yield gauge("paperwasp.prepared_queries.elements", len(self.search.prepared))

    def configure(self, running: Running | None) -> None:
        """Serves another application from now on; None: there is none. Any thread."""
        if running is None:
            self.documents.configure(None)
            self.search.configure(SearchConfig())
            self.evaluation.configure(NO_MODELS)
            return
        model = running.model
        clusters = tuple(
            ClusterConfig(
                cluster.id,
                cluster.schemas,
                QueryLimits.of(cluster.declared.tuning),
                frozenset(document.type for document in cluster.declared.documents if document.mode == "streaming"),
            )
            for cluster in model.content_clusters
        )
        models = significance_models(running.container, model.files)
        embedders = components_in(running.container.components, files_of(model.schemas.values())).embedders
        load_models(embedders.values())
        self.documents.configure(model, running.container)
        self.evaluation.configure(
            evaluated_models(running.container, model.files), running.container.query_memory_bytes
        )
        self.search.configure(
            SearchConfig(
                clusters,
                model.query_profiles,
                model.rules,
                models,
                embedders,
                running.container.allows_expressions,
                running.container.query_memory_bytes,
                running.container.tags,
                running.container.searching_chains,
            )
        )


def error_response(request: Request, error: PaperwaspError) -> Response:
    """The error as the interface that the request was for shows it."""
    if request.raw_path.startswith(DOCUMENT_ROOT):
        return error_as_accepted(request, document_error(request, error))
    if is_model_evaluation(request.raw_path):
        return error_as_accepted(request, evaluation_error(error))
    answer = respond(SearchResult(errors=[SearchError.of(error)]), accepted_format(request))
    return replace(answer, status=error.http_status)
