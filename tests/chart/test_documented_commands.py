"""What the documentation tells people to call helm with exists."""

import re
import subprocess
from functools import cache
from pathlib import Path

from controlplane import build_helm
from support.commands import commands, options
from support.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
VERBS = {"install", "upgrade", "uninstall", "rollback", "test", "get", "package", "push"}


@cache
def help_of(verb: str) -> str:
    return subprocess.run([build_helm(), verb, "--help"], capture_output=True, text=True, check=True).stdout


def test_every_option_of_helm_exists() -> None:
    found = [
        (path, words[1:])
        for path in PAGES
        for block in Page(path).blocks
        if block.language in {"", "sh"}
        for words in commands(block.text)
        if words[0] == "helm"
    ]
    assert len(found) > 8
    for path, words in found:
        assert words[0] in VERBS, (path, words)
        for option in options(words):
            known = rf"\s{re.escape(option)}\b" if option.startswith("--") else rf"\s{re.escape(option)}, "
            assert re.search(known, help_of(words[0])), (path, option, words)
