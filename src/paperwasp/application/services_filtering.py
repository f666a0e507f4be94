"""Reads the `filtering` of a container's `http`: chains of request filters, and which requests go through them.

Vespa: https://docs.vespa.ai/en/reference/applications/services/http.html#filtering
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from paperwasp.application.bindings import Binding, read_binding
from paperwasp.application.findings import Findings
from paperwasp.application.services_model import FilterChain, Filtering
from paperwasp.application.values import boolean
from paperwasp.application.xml import Element
from paperwasp.parsing.nearest import did_you_mean


def read_filtering(http: Element | None, findings: Findings) -> Filtering | None:
    """The filtering of `http`; None: there is none. Reports what is wrong with it, and what has no effect yet."""
    filtering = http.first("filtering") if http is not None else None
    if filtering is None:
        return None
    elements = {_id(each): each for each in filtering.all("request-chain")}
    filters = _Chains(elements, findings)
    chains = tuple(
        FilterChain(name, tuple(_bindings(each, findings)), filters.filters(name), each.position)
        for name, each in elements.items()
    )
    for chain in elements.values():
        _note_order(chain, findings)
    answers = list(filtering.all("response-chain"))
    for chain in answers:
        findings.warning(f"response-chain '{_id(chain)}' is not executed yet", chain.position)
    _check_defaults(http, elements, findings)
    strict = filtering.attributes.get("strict-mode")
    return Filtering(bool(chains or answers) if strict is None else boolean(strict), chains)


def referred_filters(container: Element) -> set[str]:
    """The ids of the filters that stand beside the chains, which refer to them."""
    http = container.first("http")
    filtering = http.first("filtering") if http is not None else None
    return {_id(each) for each in filtering.all("filter")} if filtering is not None else set()


def _id(element: Element) -> str:
    attributes = element.attributes
    return attributes.get("id") or attributes.get("ident") or attributes.get("idref", "")


def _bindings(chain: Element, findings: Findings) -> Iterator[Binding]:
    for element in chain.all("binding"):
        try:
            yield read_binding(element.text)
        except ValueError as error:
            findings.error(str(error), element.position)


class _Chains:
    """The filters of each chain, found once, whoever inherits them."""

    def __init__(self, elements: Mapping[str, Element], findings: Findings) -> None:
        self._elements = elements
        self._findings = findings
        self._found: dict[str, tuple[str, ...] | None] = {}
        """None: they are being looked for."""

    def filters(self, name: str) -> tuple[str, ...]:
        """Their ids, each once: those that the chain inherits and does not exclude, then its own."""
        if name in self._found:
            found = self._found[name]
            if found is None:
                self._findings.error(f"request-chain '{name}' inherits itself", self._elements[name].position)
            return found or ()
        self._found[name] = None
        chain = self._elements[name]
        ids = dict.fromkeys(each for parent in _inherited(chain) for each in self._of(parent, chain))
        for excluded in _excluded(chain):
            ids.pop(excluded, None)
        found = tuple(dict.fromkeys((*ids, *(_id(each) for each in chain.all("filter")))))
        self._found[name] = found
        return found

    def _of(self, parent: str, chain: Element) -> tuple[str, ...]:
        if parent in self._elements:
            return self.filters(parent)
        hint = did_you_mean(parent, self._elements)
        message = f"request-chain '{_id(chain)}' inherits '{parent}', which is not there{hint}"
        self._findings.error(message, chain.position)
        return ()


def _inherited(chain: Element) -> list[str]:
    element = chain.first("inherits")
    further = [each.text or _id(each) for each in element.all("chain")] if element is not None else []
    return [*chain.attributes.get("inherits", "").split(), *further]


def _excluded(chain: Element) -> list[str]:
    element = chain.first("inherits")
    further = [each.text or _id(each) for each in element.all("exclude")] if element is not None else []
    return [*chain.attributes.get("excludes", "").split(), *further]


def _note_order(chain: Element, findings: Findings) -> None:
    ordered = [each for each in chain.all("filter") if _is_ordered(each)]
    if ordered or chain.first("phase") is not None:
        message = f"the order of request-chain '{_id(chain)}' by phases, 'before' and 'after' is not executed yet"
        findings.warning(f"{message}: its filters run as they stand", chain.position)


def _is_ordered(element: Element) -> bool:
    names = ("before", "after")
    return any(name in element.attributes or element.first(name) is not None for name in names)


def _check_defaults(http: Element | None, chains: Iterable[str], findings: Findings) -> None:
    for server in http.all("server") if http is not None else ():
        name = server.attributes.get("default-request-chain")
        if name is not None and name not in chains:
            findings.error(f"there is no request-chain '{name}'{did_you_mean(name, list(chains))}", server.position)
