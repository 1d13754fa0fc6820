"""Names of objects as arguments, which a shell completes from the cluster."""

from typing import Any

import click
from click.shell_completion import CompletionItem

from dispatch_operator.api.kinds import Kind

COMPLETES_WITHIN = 3.0
"""Seconds, after which a shell gets no names."""
MOST = 500


class ObjectName(click.ParamType[str]):
    """The name of an object of a kind."""

    name = "name"

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's own.
        """Return the names of the namespace that begin so; none when the cluster does not say."""
        from dispatch_operator.plugin.session import listed_names  # noqa: PLC0415 - only when a shell asks.

        found = listed_names(self.kind, _target(ctx), within=COMPLETES_WITHIN, most=MOST)
        return [CompletionItem(name) for name in found if name.startswith(incomplete)]


def _target(context: click.Context) -> dict[str, Any]:
    """Return which cluster and namespace the words so far name, before the command's name or after it."""
    found: dict[str, Any] = {}
    for one in (context.parent, context):
        params = one.params if one else {}
        found |= {key: params[key] for key in ("kubeconfig", "context", "namespace") if params.get(key)}
    return found


START = ObjectName(Kind.DISPATCH_START)
BACKEND = ObjectName(Kind.DISPATCH_BACKEND)
