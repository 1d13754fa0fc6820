"""Kubernetes' expansion of commands and environment variables, written again from its source.

It is an independent witness of what a container receives, on bytes, as Go has it:
https://github.com/kubernetes/kubernetes/blob/v1.37.2/third_party/forked/golang/expansion/expand.go
"""

from collections.abc import Mapping


def expand(text: str, variables: Mapping[str, str] | None = None, *, garbles: bool = False) -> bytes:
    """Return the bytes that the container receives for ``text``.

    Args:
        text: An item of a command, or the value of a variable.
        variables: What ``$(NAME)`` stands for.
        garbles: Whether a ``$`` cuts the character after it in pieces, as before kubernetes#136323 was mended.
    """
    data, known, out, cursor = text.encode(), variables or {}, bytearray(), 0
    while cursor < len(data):
        here, rest = data[cursor : cursor + 1], data[cursor + 1 :]
        if here != b"$" or not rest:
            out += here
            cursor += 1
        elif rest[:1] == b"$":
            out += b"$"
            cursor += 2
        elif rest[:1] == b"(" and b")" in rest:
            name = rest[1 : rest.index(b")")]
            out += known[name.decode()].encode() if name.decode() in known else b"$(" + name + b")"
            cursor += len(name) + 3
        elif garbles:
            out += b"$" + chr(rest[0]).encode()
            cursor += 2
        else:
            out += b"$"
            cursor += 1
    return bytes(out)
