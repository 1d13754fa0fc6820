"""The name that the copy and the TrainJob of a submission share (contract section 5)."""


def object_name(job: str, submission: int | str) -> str:
    """Return ``dj-<lower-case job>-s<N>``, at most 37 characters."""
    return f"dj-{job.lower()}-s{submission}"
