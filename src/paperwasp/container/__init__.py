"""A container: takes requests for an application, asks its content clusters, and answers.

app                takes every request, and finds the interface that it is for
gate/              decides first whether the client may ask, where the container has keys, certificates or filters
interfaces         makes the interfaces of an application: those below
search/            `/search/`: queries
document/          `/document/v1/`: documents
model_evaluation   `/model-evaluation/v1/`: models
timeouts           reads the timeouts of requests, of queries as of documents
state, metrics     `/state/v1/` and what is like it: health and figures, without an application as well

It keeps no documents: it reaches them by the messenger (`coordination.messenger`).
"""
