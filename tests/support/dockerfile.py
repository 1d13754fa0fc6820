"""A Dockerfile's instructions, and its RUN steps carried out without a container engine."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Instruction(NamedTuple):
    """One instruction, its continued lines joined."""

    keyword: str
    value: str

    @property
    def words(self) -> list[str]:
        """The words of its value, in either of the two forms that instructions have."""
        words: list[str] = json.loads(self.value) if self.value.startswith("[") else shlex.split(self.value)
        return words


def stages(text: str) -> list[list[Instruction]]:
    """Return the instructions of each stage; the first of each is FROM. What stands before all of them is left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found: list[list[Instruction]] = []
    for line in filter(None, joined.splitlines()):
        keyword, _, value = line.partition(" ")
        if keyword == "FROM":
            found.append([])
        if found:
            found[-1].append(Instruction(keyword, value.strip()))
    return found


def values(stage: Sequence[Instruction], keyword: str) -> list[str]:
    """Return what the instructions of one kind say."""
    return [one.value for one in stage if one.keyword == keyword]


def carry_out(stage: Sequence[Instruction], *, context: Path, folder: Path, environment: Mapping[str, str]) -> None:
    """Do what COPY and RUN of a stage say, with `folder` as its working directory.

    Only relative paths are understood: what a stage needs of other places must come from variables.

    Raises:
        ValueError: A step is not understood.
        CalledProcessError: A command failed; it has said why on stderr.
    """
    for instruction in stage:
        match instruction:
            case Instruction("COPY"):
                _copy(instruction.words, context, folder)
            case Instruction("RUN", command):
                subprocess.run(["/bin/sh", "-ec", command], cwd=folder, env={**os.environ, **environment}, check=True)
            case _:
                pass


def _copy(words: Sequence[str], context: Path, folder: Path) -> None:
    *sources, last = words
    if any(word.startswith(("-", "/")) for word in words):
        raise ValueError(f"not understood: COPY {' '.join(words)}")
    target = folder / last
    for source in sources:
        if (context / source).is_dir():
            shutil.copytree(context / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            to = target / Path(source).name if last.endswith("/") else target
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(context / source, to)
