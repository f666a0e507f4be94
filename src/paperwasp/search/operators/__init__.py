"""Query operators: what each kind of item matches in one document type, planned once, executed in bitmaps.

A file has one operator, or the kinds of one: each below a comment with its name, what it matches, and Vespa's page.
Importing this package registers every operator in it.
"""

import importlib
import pkgutil

from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.item import plan
from paperwasp.search.operators.operator import Operator, SearchSpace, TermOperator
from paperwasp.search.operators.term import AttributeMatch, IndexMatch

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["AttributeMatch", "FieldMatch", "IndexMatch", "Operator", "SearchSpace", "TermOperator", "plan"]
