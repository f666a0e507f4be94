"""Rank features, one family a file, and rank profiles compiled with them.

A file of several features is a list of them: each has a comment with its name and arguments, what it is, and Vespa's
page, and below it the function that binds it. Importing this package registers every family in it.
"""

import importlib
import pkgutil

from paperwasp.search.features.catalog import Catalog, default_rank_features
from paperwasp.search.features.compile import check_profiles, compile_profile, compile_profiles
from paperwasp.search.features.family import evaluate, evaluate_all

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Catalog",
    "check_profiles",
    "compile_profile",
    "compile_profiles",
    "default_rank_features",
    "evaluate",
    "evaluate_all",
]
