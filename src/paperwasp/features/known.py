"""The rank features of Vespa that are known, and never executed: those that only wait.

A profile that asks for one of them is right, and is not executed. What is executed registers itself, each family in its
own file; both are in `family.families`.
Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html
"""

from __future__ import annotations

from typing import Final

from paperwasp.features.family import Family, register_known

_WAITING: Final = ("debugAttributeWait", "debugWait")


register_known(*(Family(name, ("name",), ("out",), None, repeated=True, any_output=True) for name in _WAITING))
