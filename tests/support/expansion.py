"""Kubernetes' expansion of `$(NAME)` and `$$` in a container's command and env, as the kubelet does it.

Written from the rules (kubernetes.io: "Define dependent environment variables"): `$$` is one `$`, `$(NAME)` is the
variable's value or, when there is none, stays as it is, and any other `$` stays.
"""

from collections.abc import Mapping


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Return what a process gets for `text`."""
    result, position = "", 0
    while position < len(text):
        if text[position] != "$" or position + 1 == len(text):
            result += text[position]
            position += 1
        elif text[position + 1] == "$":
            result += "$"
            position += 2
        elif text[position + 1] == "(" and ")" in text[position:]:
            end = text.index(")", position)
            name = text[position + 2 : end]
            result += variables.get(name, f"$({name})")
            position = end + 1
        else:
            result += "$"
            position += 1
    return result
