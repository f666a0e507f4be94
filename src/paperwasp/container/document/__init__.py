"""The document API, `/document/v1/`: a request becomes a message to content clusters, and their answers a response.

v1                 takes each request, and leaves it to one of the ways below
request            reads the path and the options; `routes` knows where the documents of a type are
operation          reads and checks a request about one document, and makes its message; `decoded`: without JSON
sequencer          keeps operations on one document in order where reading them takes long
queue              sends messages that came together as one, and holds those that a cluster has no room for
asking, answer     make the response of what the cluster answers
visit              many documents with GET; `visit_parameters` reads which
bulk               changes many documents with one request
"""
