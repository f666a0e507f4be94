"""YQL and the simple query language, read into query trees."""

from paperwasp.yql.filters import Filter, filtered, parse_filter, parse_recall
from paperwasp.yql.query_type import QUERY_TYPES, QueryType, query_type
from paperwasp.yql.select_json import parse_select, parse_select_grouping
from paperwasp.yql.simple import parse_simple
from paperwasp.yql.statement import OrderBy, YqlQuery, parse_yql
from paperwasp.yql.user_text import UserText, complete

__all__ = [
    "QUERY_TYPES",
    "Filter",
    "OrderBy",
    "QueryType",
    "UserText",
    "YqlQuery",
    "complete",
    "filtered",
    "parse_filter",
    "parse_recall",
    "parse_select",
    "parse_select_grouping",
    "parse_simple",
    "parse_yql",
    "query_type",
]
