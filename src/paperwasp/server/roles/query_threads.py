"""How many threads answer the queries of a content cluster, by its cores and by services.xml.

Vespa: https://docs.vespa.ai/en/reference/applications/services/content.html#requestthreads. Differs: without the
element, Vespa has 64 threads, and one for each query.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from paperwasp import limits
from paperwasp.base.env import threads_for_cores

_REQUEST_THREADS: Final = "engine/proton/tuning/searchnode/requestthreads"


def query_threads(tuning: Mapping[str, str]) -> tuple[int, int]:
    """The threads of all queries together, and the most of one; 0: as many as there are.

    tuning: of the cluster (`services_model.Content.tuning`), whose numbers were checked.
    """
    search, of_one = (tuning.get(f"{_REQUEST_THREADS}/{name}") for name in ("search", "persearch"))
    threads = max(limits.QUERY_THREADS, threads_for_cores()) if search is None else int(search)
    most = limits.MOST_QUERY_THREADS
    return min(most, max(1, threads)), 0 if of_one is None else min(most, max(1, int(of_one)))
