"""The elements of services.xml, hosts.xml and deployment.xml: tables in the language of `application.grammar`."""

from typing import Final

from paperwasp.application.grammar import read_grammar
from paperwasp.application.tables.chains import CHAINS
from paperwasp.application.tables.components import COMPONENTS
from paperwasp.application.tables.container import CONTAINER
from paperwasp.application.tables.content import CONTENT
from paperwasp.application.tables.deployment import DEPLOYMENT
from paperwasp.application.tables.services import SERVICES

RULES: Final = read_grammar(CHAINS, COMPONENTS, CONTAINER, CONTENT, SERVICES, DEPLOYMENT)
"""Name → rule; `services`, `hosts` and `deployment` are the roots of files."""

__all__ = ["RULES"]
