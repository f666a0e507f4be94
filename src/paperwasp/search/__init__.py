"""The read half of a content node: a query is bound to a view, matched, ranked, grouped and shown.

search         answers a query by the steps below; `query` has what it is asked, and `bind` what it becomes in a view
operators/     what the items of a query match, one family a file
features/      what rank profiles compute of hits, one family a file
phases/        matching and ranking: which hits are best, phase by phase
grouping/      groups of hits; `grouped_hits` is the step that makes them
show/          hits as they are sent: summaries, bolding, teasers
plan/          queries that are compiled once and run in the core, with the same answers
"""
