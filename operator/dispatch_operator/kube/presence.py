"""Whether a namespace that is to be served exists: one that does not is no fault, and nothing in it can be watched."""

from enum import Enum

from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube.client import Client
from dispatch_operator.kube.errors import ApiError


class Presence(Enum):
    """What is known of a namespace; the words stand after its name."""

    EXISTS = "exists"
    """As far as is known: also where it may not be read."""
    LEAVING = "is being deleted"
    """Its rights may be gone already, while some of its objects are not."""
    ABSENT = "does not exist"


async def presence_of(client: Client, namespace: str, *, timeout: float) -> Presence:
    """Read live whether a namespace exists.

    Args:
        client: Where to ask.
        namespace: Its name.
        timeout: Seconds for the request.
    """
    try:
        found = await client.get(Kind.NAMESPACE, None, namespace, timeout=timeout)
    except ApiError:
        return Presence.EXISTS
    match found:
        case None:
            return Presence.ABSENT
        case {"metadata": {"deletionTimestamp": str()}}:
            return Presence.LEAVING
    return Presence.EXISTS
