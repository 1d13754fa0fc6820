"""The documentation's site is built without a warning, holds every page, and fetches nothing."""

import re
import shlex
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FETCHING = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, made by the command that `make docs` carries out."""
    made = tmp_path_factory.mktemp("site")
    printed = subprocess.run(
        [shutil.which("make") or "make", "--dry-run", "--no-print-directory", "docs", f"SITE={made / 'html'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (command,) = (line for line in printed.splitlines() if "-m sphinx" in line)
    words = [word.replace("build/doctrees", str(made / "doctrees")) for word in shlex.split(command)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return made / "html"


class Fetched(HTMLParser):
    """What a browser fetches for a page by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if (tag, name) in FETCHING]


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"]
    for page in pages:
        assert (site / page.relative_to(ROOT)).with_suffix(".html").exists(), page
    assert "docs/index.html" in (site / "index.html").read_text()


def test_a_browser_fetches_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        parser = Fetched()
        parser.feed(page.read_text())
        for url in parser.found:
            assert not re.match("(https?:)?//", url), (page, url)
            assert url.startswith(("data:", "#")) or (page.parent / url.partition("?")[0]).exists(), (page, url)
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text()), style


def test_lists_and_tables_are_shown_as_such(site: Path) -> None:
    page = (site / "docs" / "contract.html").read_text()
    # A list that follows its sentence without an empty line.
    assert re.search(r"A key of .*?<ul.*?is no C identifier", page, re.DOTALL)
    assert "<td><p><code" in page


def test_no_screenful_of_a_page_is_without_an_example() -> None:
    for page in sorted((ROOT / "docs").glob("**/*.md")):
        # These two are read by their headings, a sentence at a time.
        if page.parent.name == "design" or page.stem in {"contract", "architecture"}:
            continue
        since = 0
        for line in page.read_text().splitlines():
            since = 0 if re.match(r"\s*(```|\|)|.*`[^`]+ [^`]+`", line) else since + 1
            assert since <= 40, f"{page.relative_to(ROOT)}: {line}"
