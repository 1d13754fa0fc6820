"""An exhaustive model (issue 5, item 4): the operator's own looks against a small API server, in every interleaving.

What is explored is the operator's code: `Looker.look` and `Collector.look` run as they are, suspended at each request.
Only the API server, the watches and everybody else are a model.
"""
