"""The functions of the grouping language that make values of hits, one family a file.

Importing this package registers every function in it.
"""

import importlib
import pkgutil

from paperwasp.search.grouping.expression_node import ExpressionNode, Rows, Scope, bind

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["ExpressionNode", "Rows", "Scope", "bind"]
