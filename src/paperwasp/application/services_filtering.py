"""Reads the `filtering` of a container's `http`: chains of request filters, and which requests go through them.

Vespa: https://docs.vespa.ai/en/reference/applications/services/http.html#filtering
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from paperwasp.application.bindings import Binding, read_binding
from paperwasp.application.findings import Findings
from paperwasp.application.services_model import FilterChain, Filtering
from paperwasp.application.values import boolean
from paperwasp.application.xml import Element
from paperwasp.components.cors import ANSWERS
from paperwasp.text.parsing.nearest import did_you_mean

_REQUEST_CHAIN: Final = "request-chain"
_RESPONSE_CHAIN: Final = "response-chain"
_CHAINS: Final = (_REQUEST_CHAIN, _RESPONSE_CHAIN)


def read_filtering(http: Element | None, findings: Findings) -> Filtering | None:
    """The filtering of `http`; None: there is none. Reports what is wrong with it, and what has no effect yet."""
    filtering = http.first("filtering") if http is not None else None
    if filtering is None:
        return None
    strict = filtering.attributes.get("strict-mode")
    requests, answers = (_read_chains(filtering, kind, findings) for kind in (_REQUEST_CHAIN, _RESPONSE_CHAIN))
    _note_answers(filtering, answers, findings)
    _check_defaults(http, _REQUEST_CHAIN, requests, findings)
    _check_defaults(http, _RESPONSE_CHAIN, answers, findings)
    _check_access_control(filtering, findings)
    return Filtering(bool(requests or answers) if strict is None else boolean(strict), requests, answers)


def _read_chains(filtering: Element, kind: str, findings: Findings) -> tuple[FilterChain, ...]:
    elements = {_id(each): each for each in filtering.all(kind)}
    filters = _Chains(kind, elements, findings)
    for each in elements.values():
        _note_order(each, findings)
    return tuple(
        FilterChain(name, tuple(_bindings(each, findings)), filters.filters(name), each.position)
        for name, each in elements.items()
    )


def _note_answers(filtering: Element, chains: Iterable[FilterChain], findings: Findings) -> None:
    """Of the filters of answers, Vespa's for other origins is executed."""
    tags = ("filter", *_CHAINS)
    elements = [each for tag in tags for each in (filtering.all(tag) if tag == "filter" else _members(filtering, tag))]
    executed = {_id(each) for each in elements if each.attributes.get("class", _id(each)).partition(":")[0] == ANSWERS}
    for chain in chains:
        for name in chain.filters:
            if name not in executed:
                message = f"filter '{name}' of response-chain '{chain.id}' is not executed yet"
                findings.warning(f"{message}: of filters of answers, {ANSWERS} is", chain.position)


def _members(filtering: Element, kind: str) -> Iterator[Element]:
    for chain in filtering.all(kind):
        yield from chain.all("filter")


def _check_access_control(filtering: Element, findings: Findings) -> None:
    """Outside Vespa Cloud the element demands a domain, and makes chains without filters."""
    control = filtering.first("access-control")
    if control is None:
        return
    if not control.attributes.get("domain"):
        findings.error("No Athenz domain provided for 'access-control'", control.position)
        return
    advice = "it is for Vespa Cloud. 'clients', or a filter of a request-chain, says who may ask a container"
    findings.warning(f"access-control lets everybody ask: {advice}", control.position)


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

    def __init__(self, kind: str, elements: Mapping[str, Element], findings: Findings) -> None:
        self._kind = kind
        self._elements = elements
        self._findings = findings
        self._found: dict[str, tuple[str, ...] | None] = {}
        """None: they are being looked for."""

    def filters(self, name: str) -> tuple[str, ...]:
        """Their ids, each once: those that the chain inherits and does not exclude, then its own."""
        if name in self._found:
            found = self._found[name]
            if found is None:
                self._findings.error(f"{self._kind} '{name}' inherits itself", self._elements[name].position)
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
        message = f"{self._kind} '{_id(chain)}' inherits '{parent}', which is not there{hint}"
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
        message = f"the order of {chain.tag} '{_id(chain)}' by phases, 'before' and 'after' is not executed yet"
        findings.warning(f"{message}: its filters run as they stand", chain.position)


def _is_ordered(element: Element) -> bool:
    names = ("before", "after")
    return any(name in element.attributes or element.first(name) is not None for name in names)


def _check_defaults(http: Element | None, kind: str, chains: Sequence[FilterChain], findings: Findings) -> None:
    names = [chain.id for chain in chains]
    for server in http.all("server") if http is not None else ():
        name = server.attributes.get(f"default-{kind}")
        if name is not None and name not in names:
            findings.error(f"there is no {kind} '{name}'{did_you_mean(name, names)}", server.position)
