"""Asks a live service whatever its OpenAPI descriptions allow, and what they do not: no request may end in a defect.

    python -m tools.fuzz --requests 200000

    values     texts, numbers and JSON: valid, nearly valid, hostile
    seeds      applications, documents and queries, those of the golden scripts
    drafts     requests, made of the descriptions and the seeds
    client     a connection that sends any bytes as a request
    target     the service: its applications, its memory
    attack     the loop, what is wrong with an answer, and the report

It deploys several applications with all their documents, and goes on deploying others and feeding while it asks. What
it looks for: a status of 5xx that no design has; an answer that the description does not have, or does not have so; no
answer in time; a service that ends; memory that grows. The seed is printed, and each request that fails is written as
a line for curl.
"""
