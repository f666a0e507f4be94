"""The document API, `/document/v1/`: a request becomes a message to content clusters, and their answers a response.

v1                 takes each request, and leaves it to one of the ways below
request            reads the path and the options; `routes` knows where the documents of a type are
plain_changes      reads puts and updates of plain fields in few steps: nearly all that a feed sends
operation          reads and checks any request about one document, and makes its message; `decoded` without JSON
sequencer          keeps operations on one document in order where reading them takes long
queue              sends messages that came together as one, and holds those that a cluster has no room for
asking, answer     make the response of what the cluster answers
visit              reads many documents with GET; `visit_parameters` reads which of the `visited_clusters`, and from
                   where on (`continuations`); `visit_rendering` writes them
bulk               changes many documents with one request
"""
