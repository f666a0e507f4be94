"""Who may do what: what containers and the config server have in common.

    keys        bearer keys, each a file of the data directory with the hash of its secret
    bearer      the token of a request
    open_pages  what needs no permission
    refusals    what the log says of refused requests

Vespa: https://docs.vespa.ai/en/security/guide.html
"""
