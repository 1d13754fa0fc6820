"""Text that Kubernetes' expansion leaves as it is, byte for byte (docs/contract.md, Verbatim text)."""

import re

# Before any of these Kubernetes would take the dollar for its own. A non-ASCII character it would cut in pieces:
# https://github.com/kubernetes/kubernetes/issues/136323
_TAKEN = re.compile(r"\$(?=[$(]|[^\x00-\x7f])")


def escape_dollars(text: str) -> str:
    """Return what to write in a command or an environment variable so that the process receives ``text``."""
    return _TAKEN.sub("$$", text)
