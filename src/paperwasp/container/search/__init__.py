"""`/search/`: a request becomes a query, the content clusters are asked, and their answers become one.

handler            takes each request, and goes through the steps below
known_requests     finds requests that came before but for text and vector, of which nothing else is read
text_templates     makes the template of their query, which the core compiles to a plan
text_answers       asks the cluster for what a plan finds; `text_routes`: by which the core does so without Python
request            reads names and values; `parameters` makes them `settings` by `setters`, under a query profile
shapes             says which requests share a prepared query: those of one shape
prepare            makes the prepared query of a shape, which `prepared_cache` keeps
binding            binds it to the values of one request: `tree`, `rewrites` (`added_terms`, `locations`),
                   `inputs` (`embedding`), `sorting`, `grouping`, `paging`
merge              joins the answers of the clusters; then `global_ranking` and `collapse`
rendering          writes JSON; `groups_json`, `xml` and `benchmark` beside it
answer_cache       keeps whole answers until something is written

`config` has what it knows of the application, `word_indexes` how the words of its fields are read.
"""
