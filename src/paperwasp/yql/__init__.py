"""YQL and the simple query language, read into query trees."""

from paperwasp.yql.serialize import to_yql
from paperwasp.yql.simple import parse_simple, query_type
from paperwasp.yql.statement import OrderBy, YqlQuery, parse_yql
from paperwasp.yql.user_text import UserText, complete

__all__ = ["OrderBy", "UserText", "YqlQuery", "complete", "parse_simple", "parse_yql", "query_type", "to_yql"]
