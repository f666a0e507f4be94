"""Models that are called over HTTP: a client for JSON (`client`), and the secrets that it identifies itself by
(`secrets`). Blocking, for any thread that is not an event loop's.
"""
