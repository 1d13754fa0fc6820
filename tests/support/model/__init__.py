"""An exhaustive model: the operator's own reconciles against a small API server, in every interleaving.

What is explored is the operator's code: `Reconciler.reconcile` and `OrphanedCopies.reconcile` run as they are, suspended at each request.
Only the API server, the watches and everybody else are a model.
"""
