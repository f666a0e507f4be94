"""paperwasp: a search and document service that speaks Vespa's interfaces."""

__version__ = "0.1.0"
