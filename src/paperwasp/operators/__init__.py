"""Query operators: what each kind of item matches in one document type, planned once, executed in bitmaps."""

from paperwasp.operators.base import Operator, SearchSpace, plan
from paperwasp.operators.term import AttributeMatch, FieldMatch, IndexMatch, TermOperator

__all__ = ["AttributeMatch", "FieldMatch", "IndexMatch", "Operator", "SearchSpace", "TermOperator", "plan"]
