"""YQL and the simple query language, read into query trees."""

from paperwasp.query_languages.yql.query_type import QUERY_TYPES, QueryType, query_type
from paperwasp.query_languages.yql.select_json import parse_select, parse_select_grouping
from paperwasp.query_languages.yql.simple import parse_simple
from paperwasp.query_languages.yql.statement import OrderBy, YqlQuery, parse_yql
from paperwasp.query_languages.yql.user_text import Filter, UserText, complete, filtered, parse_filter, parse_recall

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
