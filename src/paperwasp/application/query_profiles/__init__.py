"""Query profiles: named sets of search parameters, kept in the package; types that say what may be in them.

Read from XML and checked at deployment; resolved and put under the parameters of a request at query time.

Vespa: https://docs.vespa.ai/en/querying/query-profiles.html
"""

from paperwasp.application.query_profiles.profiles import (
    FOLDER,
    NO_QUERY_PROFILES,
    REFERENCE,
    QueryProfiles,
    ResolvedProfile,
    parse_query_profiles,
)

__all__ = ["FOLDER", "NO_QUERY_PROFILES", "REFERENCE", "QueryProfiles", "ResolvedProfile", "parse_query_profiles"]
