"""`/search/`: a request becomes a query, the content clusters are asked, and their answers become one.

handler            takes each request, and goes through the steps below
known_requests     finds requests that came before but for text and vector: `text_requests`, `text_answers` answer them
request            reads names and values; `parameters` makes them settings, under a query profile
prepare            makes the query that all requests of one shape (`shapes`) share; `kept_queries` keeps it
binding            binds it to the values of one request: `tree`, `inputs`, `rewrites`, `sorting`, `grouping`
merge              joins the answers of the clusters; then `global_ranking` and `collapse`
rendering          writes JSON; `groups_json` and `xml` beside it

`config` has what it knows of the application, `cache` keeps whole answers.
"""
