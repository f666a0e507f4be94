"""Query operators: what each kind of item matches in one document type, planned once, executed in bitmaps.

Importing this package registers every operator in it.
"""

import importlib
import pkgutil

from paperwasp.operators.base import Operator, SearchSpace, plan
from paperwasp.operators.term import AttributeMatch, FieldMatch, IndexMatch, TermOperator

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["AttributeMatch", "FieldMatch", "IndexMatch", "Operator", "SearchSpace", "TermOperator", "plan"]
