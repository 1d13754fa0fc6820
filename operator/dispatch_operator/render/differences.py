"""Where two JSON values differ."""


def differing_paths(wrote: object, read: object, path: str) -> list[str]:
    """Name every path below ``path`` at which two JSON values differ."""
    if isinstance(wrote, dict) and isinstance(read, dict):
        return [
            found
            for key in sorted(wrote.keys() | read.keys())
            for found in (
                differing_paths(wrote[key], read[key], f"{path}.{key}")
                if key in wrote and key in read
                else [f"{path}.{key}"]
            )
        ]
    if isinstance(wrote, list) and isinstance(read, list) and len(wrote) == len(read):
        return [
            found
            for index, (one, other) in enumerate(zip(wrote, read, strict=True))
            for found in differing_paths(one, other, f"{path}[{index}]")
        ]
    return [] if wrote == read else [path]
