"""`deploy:environment` and its like: of the elements that are variants of each other, the ones for this deployment.

Elements of one tag and id that stand side by side are variants of each other where any of them has a directive. Those
whose directives do not fit go; of the others, those with the most fitting directives stay. What an element says holds
for all that is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from paperwasp.application.findings import Findings
from paperwasp.application.xml import Element
from paperwasp.base.records import dataclass
from paperwasp.text.parsing.nearest import did_you_mean

_PREFIX: Final = "deploy:"
_ENVIRONMENTS: Final = ("dev", "test", "staging", "perf", "prod")
_ONE_REGION: Final = ("dev", "test", "staging", "perf")
"""Environments where the region of a directive does not matter."""

_Directives = Mapping[str, frozenset[str]]
_NONE: Final[_Directives] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DeployProperties:
    """The properties of a deployment, by which variants of services.xml and of query profiles are chosen."""

    instance: str = "default"
    environment: str = "prod"
    region: str = "default"
    cloud: str = "default"
    tags: frozenset[str] = frozenset()

    def values(self, name: str) -> frozenset[str]:
        """The values of the deployment for the directive `deploy:name`."""
        return self.tags if name == "tags" else frozenset({str(getattr(self, name))})


_NAMES: Final = ("instance", "environment", "region", "cloud", "tags")


def variant(root: Element, properties: DeployProperties, findings: Findings) -> Element:
    """The tree for one deployment, without directives."""
    chooser = _Chooser(properties, findings)
    chooser.check_directives(root)
    return chooser.choose(root, _NONE)


@dataclass(frozen=True, slots=True)
class _Chooser:
    properties: DeployProperties
    findings: Findings

    def choose(self, element: Element, around: _Directives) -> Element:
        context = {**_read_directives(element), **around}
        groups: dict[tuple[str, ...], list[Element]] = {}
        for child in element.children:
            identity = (child.tag, child.attributes.get("id", ""), child.attributes.get("idref", ""))
            groups.setdefault(identity, []).append(child)
        kept = {id(child) for group in groups.values() for child in self._of_group(group, context)}
        children = [self.choose(child, context) for child in element.children if id(child) in kept]
        attributes = {name: text for name, text in element.attributes.items() if not name.startswith(_PREFIX)}
        return replace(element, attributes=attributes, children=children)

    def _of_group(self, group: list[Element], context: _Directives) -> list[Element]:
        for child in group:
            self.check_directives(child)
        directives = [_read_directives(child) for child in group]
        if not any(directives):
            return group
        for child, own in zip(group, directives, strict=True):
            self._check_subset(child, own, context)
        fitting = [(child, own) for child, own in zip(group, directives, strict=True) if self._fits(own)]
        ranked = [(self._rank({**context, **own}), child) for child, own in fitting]
        best = max((rank for rank, _ in ranked), default=0)
        return [child for rank, child in ranked if rank == best or best == 0]

    def _fits(self, own: _Directives) -> bool:
        for name, values in own.items():
            if name == "region" and self.properties.environment in _ONE_REGION:
                if "environment" not in own:
                    return False
            elif values.isdisjoint(self.properties.values(name)):
                return False
        return True

    def _rank(self, directives: _Directives) -> int:
        return sum(not values.isdisjoint(self.properties.values(name)) for name, values in directives.items())

    def _check_subset(self, child: Element, own: _Directives, context: _Directives) -> None:
        for name, values in own.items():
            if name in context and not values <= context[name]:
                inner, outer = (" ".join(sorted(texts)) for texts in (values, context[name]))
                message = f'deploy:{name}="{inner}" of \'{child.tag}\' is not within the "{outer}" around it'
                self.findings.error(message, child.position)

    def check_directives(self, element: Element) -> None:
        """Tells what is no directive, and what no environment."""
        for name in element.attributes:
            known = name.removeprefix(_PREFIX)
            if name.startswith(_PREFIX) and known not in _NAMES:
                message = f"attribute '{name}' not allowed here, in '{element.tag}'{did_you_mean(known, _NAMES)}"
                self.findings.error(message, element.position)
        for environment in sorted(_read_directives(element).get("environment", frozenset()) - set(_ENVIRONMENTS)):
            hint = did_you_mean(environment, _ENVIRONMENTS)
            self.findings.error(f"'{environment}' is no environment{hint}", element.position)


def _read_directives(element: Element) -> _Directives:
    found = {name: frozenset(element.attributes.get(_PREFIX + name, "").split()) for name in _NAMES}
    return {name: values for name, values in found.items() if values}
