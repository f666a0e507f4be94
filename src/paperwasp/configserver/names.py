"""The names of applications, and what a name may be."""

from __future__ import annotations

from typing import Final

from paperwasp import limits
from paperwasp.base.records import dataclass
from paperwasp.errors import InvalidInput

DEFAULT: Final = "default"
"""The tenant that always exists, and the name of an application or instance that nobody named."""
_CHARACTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


@dataclass(frozen=True, slots=True, order=True)
class ApplicationId:
    """Whose application it is. `str()` is the form of Vespa's messages."""

    tenant: str = DEFAULT
    application: str = DEFAULT
    instance: str = DEFAULT

    def __str__(self) -> str:
        return f"{self.tenant}.{self.application}.{self.instance}"

    @classmethod
    def from_key(cls, key: str) -> ApplicationId:
        """The application with that place in the config store."""
        return cls(*key.split("/"))

    @property
    def key(self) -> str:
        """Its place in the config store. Errors: InvalidInput for a name that there can be no application of."""
        names = (("tenant", self.tenant), ("application", self.application), ("instance", self.instance))
        return "/".join(check_name(what, name) for what, name in names)


def check_name(what: str, name: str) -> str:
    """The name, if a tenant, application or instance may have it. Errors: InvalidInput."""
    if not name or not _CHARACTERS.issuperset(name) or len(name) > limits.APPLICATION_NAME_LENGTH:
        longest = limits.APPLICATION_NAME_LENGTH
        raise InvalidInput(f"Illegal {what} name '{name}': it is 1 to {longest} letters, digits, '-' and '_'")
    return name
