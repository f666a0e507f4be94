"""The indexing language, executed: scripts make fields of documents on their way to a content cluster.

    check_scripts   the findings about the scripts of a schema, at a deployment
    processor_of    the scripts of a schema, ready to run: puts and updates in, puts and updates with derived fields out

A script is compiled once (`compiler`): each expression becomes a closure and the type of its value. Expressions live by
family in `sources`, `control`, `text`, `numbers`, `converters` and `embedding`; each module registers its own by their
keywords.

Only fields outside the document are made by scripts: what a document itself says is never changed, as in Vespa. They
are made in the container, before the operation is logged, so that `now` and `random` are decided once.

Vespa: https://docs.vespa.ai/en/reference/writing/indexing-language.html
"""

from paperwasp.indexing.compiler import check_scripts
from paperwasp.indexing.processor import Processor, processor_of

__all__ = ["Processor", "check_scripts", "processor_of"]
