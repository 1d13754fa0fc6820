"""The edge between the API server's JSON and the operator's records."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError, Effect
from dispatch_operator.records.dispatch import DEFAULT_CALL_TIMEOUT
from dispatch_operator.records.reading import AnyRecord, RecordError, read_record

R = TypeVar("R", bound=AnyRecord)


def record(verb: str, kind: Kind, raw: Mapping[str, Any]) -> AnyRecord:
    """Read the object that a request answered with.

    Raises:
        ApiError: It is not what its kind promises: then nobody knows what was done.
    """
    try:
        return read_record(kind, raw)
    except RecordError as error:
        raise ApiError(verb, kind, Effect.UNANSWERED, str(error)) from error


async def get(
    client: Client, kind: type[R], namespace: str, name: str, *, timeout: float = DEFAULT_CALL_TIMEOUT
) -> R | None:
    """Read one object live; None when it does not exist.

    Raises:
        ApiError: The request failed, or its answer is not what the kind promises.
    """
    raw = await client.get(kind.KIND, namespace, name, timeout=timeout)
    return None if raw is None else cast("R", record("get", kind.KIND, raw))
