"""The aggregators of the grouping language, one family a file.

Importing this package registers every aggregator in it.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
