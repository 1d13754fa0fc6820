"""What a TrainJob was written with: known from the TrainJob itself, whatever becomes of its backend meanwhile."""

from dispatch_operator.reconcile.observation import Observed
from dispatch_operator.render.terms import BackendTerms, read_terms, terms_of


def borne_terms(observed: Observed) -> BackendTerms | None:
    """Return what the TrainJob itself says that it took from its backend; None when it does not say."""
    job = observed.train_job.obj
    return read_terms(job.metadata.annotations.backend) if job else None


def wrote_terms(observed: Observed) -> BackendTerms | None:
    """Return what the TrainJob was written with; by today's backend where it does not say, None when that is gone."""
    backend = observed.backend.obj
    return borne_terms(observed) or (terms_of(backend.valid) if backend and backend.valid else None)
