"""The docs say what the code does: names, keys and words in both directions, links and paths, and cited headings."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import click
import pytest
from msgspec import structs

from dispatch_operator.api import group
from dispatch_operator.api.enums import BackendGate, BackendState, Condition, ErrorClass, Gate, Phase, Retry
from dispatch_operator.api.models import JobSpec, StartRequest
from dispatch_operator.api.models.backend import BackendSpec, Kueue, Timeouts
from dispatch_operator.api.models.base import Model
from dispatch_operator.api.models.start import Extensions, StartSpec
from dispatch_operator.api.models.status import StartStatus
from dispatch_operator.checks.compatibility import POLICY_ENV
from dispatch_operator.checks.request import FIELDS, SHELL_ENV
from dispatch_operator.checks.runtime import RULES
from dispatch_operator.cli.main import COMMANDS
from dispatch_operator.cli.run import run_command
from dispatch_operator.reconcile.failure_cause import CAUSES, PROLOGUE_REFUSED
from dispatch_operator.reconcile.status import STEPS
from dispatch_operator.reconcile.steps import order
from dispatch_operator.render.prologue import prologue
from support.pages import Page, words

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "operator" / "dispatch_operator"
CONTRACT = Page(ROOT / "docs" / "contract.md")
GUIDE = Page(ROOT / "docs" / "guide.md")
ARCHITECTURE = Page(ROOT / "docs" / "architecture.md")
PAGES = [
    Page(path)
    for path in (
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        ROOT / "tests" / "README.md",
    )
]
NAMES = "Names, labels and annotations"
VARIABLE = re.compile(r"\bDISPATCH_[A-Z0-9_]*[A-Z0-9]\b")
KEYS = re.compile("(LABEL|ANNOTATION)_")
OF_OTHERS = {"LABEL_JOB_UID", "LABEL_REPLICATED_JOB", "LABEL_RESTART_ATTEMPT"}
"""Keys that Kueue or Trainer sets, and the operator only reads."""


def aliases(model: type[Model]) -> list[str]:
    """Return the keys of a model."""
    return [field.alias or name for name, field in model.model_fields.items()]


def calls(function: str, files: Iterable[Path] = tuple(PACKAGE.rglob("*.py"))) -> Iterator[ast.Call]:
    """Yield every call of a function by its name, by default in all of the operator."""
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
                yield node


def literal(call: ast.Call, place: int) -> str | None:
    """Return an argument that is written as text."""
    argument = call.args[place] if len(call.args) > place else None
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else None


def reasons_while_unknown() -> set[str]:
    """Return the reasons that conditions of a DispatchStart can have while they are Unknown, but for phases and classes."""
    waiting = {literal(call, 1) for call in calls("Waiting")}
    unknown = {
        literal(call, 2)
        for call in calls("Wanted")
        if len(call.args) > 1 and isinstance(call.args[1], ast.Name) and call.args[1].id == "UNKNOWN"
    }
    return {reason for reason in waiting | unknown if reason}


def variables() -> list[str]:
    """Return the variables that a job gets, in the order in which they are set."""
    set_by_train_job = VARIABLE.findall((PACKAGE / "render" / "environment.py").read_text())
    (exported,) = re.findall(r"^export (.*)$", prologue(), re.MULTILINE)
    return [*set_by_train_job, *exported.split()]


def keys() -> set[tuple[str, str]]:
    """Return every label and annotation that the operator writes, with its kind."""
    return {
        (value, name.partition("_")[0].lower())
        for name, value in vars(group).items()
        if KEYS.match(name) and name not in OF_OTHERS
    }


def fields_of_backend() -> list[str]:
    """Return the fields of a backend's spec; of the timeouts each one."""
    return [
        field
        for alias in aliases(BackendSpec)
        for field in ([f"timeouts.{timeout}" for timeout in aliases(Timeouts)] if alias == "timeouts" else [alias])
    ]


@pytest.mark.parametrize(
    ("heading", "number", "want"),
    [
        ("DispatchStart", 0, aliases(StartSpec)),
        ("DispatchBackend", 0, fields_of_backend()),
        ("Request fields", 0, aliases(StartRequest)),
        ("Backend gates", 0, list(BackendGate)),
        ("Runtime rules", 0, [*(rule[0] for rule in RULES), "names-fit"]),
        ("Environment of the job", 0, variables()),
        ("Error classes", 0, list(ErrorClass)),
        ("Phases", 0, list(Phase)),
        ("Conditions", 0, list(Condition)),
        ("Guarantees of status", 0, [field.encode_name for field in structs.fields(StartStatus)]),
        ("Command line", 0, [f"dispatch-operator {name}" for name in COMMANDS]),
    ],
)
def test_a_table_of_the_contract_names_what_the_code_has(heading: str, number: int, want: list[str]) -> None:
    assert sorted(CONTRACT.words(heading, number)) == sorted(want)


def test_the_steps_stand_in_their_order_with_their_conditions() -> None:
    rows = CONTRACT.table("Steps of a Start")
    assert [row[0] for row in rows] == [str(number) for number in range(1, 10)]
    assert list(dict.fromkeys(word for row in rows for word in words(row[2]))) == list(STEPS)
    linked = [re.sub(r".*\(#([^)]*)\).*", r"\1", row[1]) for row in rows]
    nine = ARCHITECTURE.table("The nine steps")
    assert [row[4].partition("#")[2].rstrip(")") for row in nine] == linked
    # Steps 2 to 4 are one function; two functions of the order have no number.
    functions = [word for row in nine for word in words(row[3])]
    ordered = [step.__name__ for step in (*order.FROM_THE_BEGINNING, *order.WITH_TRAIN_JOB)]
    assert [name for name in functions if name in ordered] == [
        name for name in ordered if name not in {"resolve_in_flight", "find_train_job"}
    ]
    for row in nine:
        for file, function in zip(words(row[2]), words(row[3]), strict=True):
            assert f"def {function}(" in (PACKAGE / file).read_text()


def test_the_reasons_while_unknown_are_those_that_the_code_can_write() -> None:
    assert set(CONTRACT.words("Conditions", 1)) == reasons_while_unknown()


@pytest.mark.parametrize(
    ("heading", "field", "words_of_it"),
    [
        ("DispatchStart", "gate", Gate),
        ("DispatchStart", "retry", Retry),
        ("DispatchBackend", "state", BackendState),
        ("DispatchBackend", "kueue", aliases(Kueue)),
    ],
)
def test_a_field_of_the_contract_names_the_words_that_it_may_hold(
    heading: str, field: str, words_of_it: Sequence[str]
) -> None:
    _, default, meaning = CONTRACT.row(heading, field)
    assert {*words(default), *words(meaning)} == set(words_of_it)


def test_every_field_of_a_request_is_in_the_contract() -> None:
    assert sorted(CONTRACT.words("Job fields")) == sorted(aliases(JobSpec))
    known = [field.alias for field in Extensions.model_fields.values() if field.alias and "/" in field.alias]
    assert CONTRACT.words("Extensions") == known


def test_the_fields_that_can_be_refused_are_those_that_are_checked_and_in_their_order() -> None:
    rows = [row for heading in ("Request fields", "Job fields", "Extensions") for row in CONTRACT.table(heading)]
    refusable = [word for row in rows if row[2] not in {"", "never"} for word in words(row[0])]
    assert refusable == [field for field, _ in FIELDS]


def test_names_of_variables_that_can_not_be_used_are_all_in_the_contract() -> None:
    named = [word for word in words(CONTRACT.section("Names of variables")) if re.fullmatch("[A-Z_][A-Z0-9_]*", word)]
    # The last sentence names some of them again, and the prefix is not the name of a variable.
    want = {*SHELL_ENV, *(name for names in POLICY_ENV.values() for name in names), group.DISPATCH_ENV}
    assert set(named) == want


def test_every_label_and_annotation_is_in_the_contract_with_its_kind() -> None:
    assert {(words(row[0])[0], row[1]) for row in CONTRACT.table(NAMES)} == keys()


def test_other_names_that_others_see_are_in_the_contract() -> None:
    named = {*words(CONTRACT.prose)}
    assert {
        f"{group.API_VERSION}",
        group.START_GATE,
        group.PATCH_MANAGER,
        group.CHECK_CONTROLLER,
        group.PODINFO_VOLUME,
        group.PODINFO_PATH,
    } <= named


def test_the_causes_of_a_failed_job_are_in_the_contract_and_in_the_guide() -> None:
    told = {cause: words(row[1])[0] for row in CONTRACT.table("Outcome") for cause in words(row[0])}
    assert told == CAUSES
    # A word of a literal that is no key would be a cause that nobody has heard of.
    used = {literal(call, 0) for call in calls("Cause")}
    assert {cause for cause in used if cause} <= {*CAUSES, "Unknown"}
    guide = {cause: row[0] for row in GUIDE.table("Causes of a failed job") for cause in words(row[1])}
    assert {cause: kind for cause, kind in guide.items() if cause[0].isupper()} == CAUSES


def test_the_prologue_exits_as_the_contract_says() -> None:
    assert f"**{PROLOGUE_REFUSED}**" in CONTRACT.section("Prologue")
    assert f"exit {PROLOGUE_REFUSED}" in prologue()


def test_the_options_of_run_are_in_the_contract() -> None:
    options = {
        name
        for option in run_command.params
        if isinstance(option, click.Option)
        for name in option.opts
        if name.startswith("--")
    }
    assert {word.split()[0] for word in CONTRACT.words("The run command") if word.startswith("--")} == options


def test_the_guide_has_every_phase_every_class_and_every_gate() -> None:
    assert sorted(GUIDE.words("What happens, and where to see it")) == sorted(Phase)
    assert {word for word in GUIDE.code if word.startswith("Err")} >= set(ErrorClass)
    assert GUIDE.words("Backends, and what observe-only means") == list(BackendGate)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.path.relative_to(ROOT)))
def test_every_class_that_a_page_names_exists(page: Page) -> None:
    named = {word for word in page.code if re.fullmatch("Err[A-Z][A-Za-z]*", word)}
    assert named <= {*ErrorClass, *CAUSES}


# Headings that are cited.


def sentences(text: str) -> str:
    """Return a file's text on one line, without what marks comments, so that a citation may go over a line's end."""
    return re.sub(r"\s+", " ", re.sub(r"^\s*#+ ?", "", text, flags=re.MULTILINE))


def cited(text: str, headings: Sequence[str]) -> Iterator[str]:
    """Yield what a text cites of the contract: headings, or what stands where one should."""
    known = sorted(headings, key=len, reverse=True)
    for found in re.finditer(r"docs/contract\.md`?, (?=[A-Z])", text):
        rest = text[found.end() :]
        while True:
            heading = next((one for one in known if re.match(re.escape(one) + r"(?![\w-])", rest)), None)
            if heading is None:
                yield rest[:40]
                break
            yield heading
            more = re.match(r"(?:, | and |, and )(?=[A-Z])", rest[len(heading) :])
            if more is None:
                break
            rest = rest[len(heading) + more.end() :]


def test_citations_are_read_as_people_read_them() -> None:
    headings = ["Read-back", "Phases", "Names, labels and annotations", "Read the TrainJob back", "Outcome"]
    for text, want in {
        "x (docs/contract.md, Phases and Outcome).": ["Phases", "Outcome"],
        "(`docs/contract.md`, Names, labels and annotations); a": ["Names, labels and annotations"],
        "See docs/contract.md, Read the TrainJob back and Read-back.": ["Read the TrainJob back", "Read-back"],
        "docs/contract.md, Phases, as one function": ["Phases"],
        "docs/contract.md, Fazes and": ["Fazes and"],
        "docs/contract.md, Outcomes.": ["Outcomes."],
        "docs/contract.md, Phases and Autcome.": ["Phases", "Autcome."],
        "`docs/contract.md` to the same sets": [],
    }.items():
        assert list(cited(text, headings)) == want


def test_every_heading_that_code_cites_is_in_the_contract() -> None:
    headings = CONTRACT.headings
    found = [
        (path.relative_to(ROOT), heading)
        for path in repository()
        if path.suffix in {".py", ".sh", ".tpl", ".yaml", ".toml"} and path != Path(__file__)
        for heading in cited(sentences(path.read_text()), headings)
    ]
    assert len(found) > 60
    assert [(path, heading) for path, heading in found if heading not in headings] == []


def test_every_rule_that_a_mutant_is_without_is_a_heading_of_the_contract() -> None:
    rules = {literal(call, 0) for call in calls("Mutant", [ROOT / "tests" / "support" / "model" / "mutants.py"])}
    assert len(rules) > 6
    assert rules <= set(CONTRACT.headings)


# What nothing in the repository may say.


TEXTS = {".md", ".py", ".sh", ".yaml", ".yml", ".toml", ".tpl", ".txt", ".json", ""}
MADE = re.compile(r"\.(git|venv|hypothesis|\w+_cache)|__pycache__|dist|build|requirements")
"""Folders that hold nothing which people wrote."""


@cache
def repository(folder: Path = ROOT) -> tuple[Path, ...]:
    """Return the text files of the repository, without asking git, which may not be there."""
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not MADE.fullmatch(path.name):
            found += repository(path)
        elif path.is_file() and path.suffix in TEXTS and not path.name.startswith(".coverage"):
            found.append(path)
    return tuple(found)


def lines_with(pattern: str, *folders: str) -> list[str]:
    """Return the lines of the repository in which a pattern is found, but for those of this file."""
    wanted = re.compile(pattern)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in repository()
        if path != Path(__file__) and (not folders or path.relative_to(ROOT).parts[0] in folders)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if wanted.search(line)
    ]


def test_nothing_names_a_path_outside_the_repository() -> None:
    assert lines_with(r"""\.\./shared|(?<![\w/-])shared/|parents\[\d\] / "shared""") == []


def test_no_number_of_a_section_is_cited() -> None:
    assert lines_with(r"(?i)\bsections? \d", "operator", "tests", "tools", "docs", "deploy") == []


# Links and paths.


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.path.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Page) -> None:
    for link in page.links:
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.path.parent / file).resolve() if file else page.path
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in Page(target).anchors, link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.path.relative_to(ROOT)))
def test_every_path_in_backticks_exists(page: Page) -> None:
    below = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    files = {path.name for path in repository()}
    for word in page.code:
        if not re.fullmatch(r"[\w.\-]+(/[\w.\-]+)*/?", word):
            continue
        first, *more = word.split("/")
        if more and first != "build" and (ROOT / first).exists():
            assert (ROOT / word).exists(), word
        elif more and first in below:
            assert (PACKAGE / word).exists(), word
        elif not more and re.fullmatch(r"[a-z_]+\.(py|sh|tpl|toml)", word):
            assert word in files, word


def test_every_folder_and_test_folder_is_on_its_page() -> None:
    of_package = {f"{path.parent.name}/" for path in PACKAGE.glob("*/__init__.py")}
    assert set(ARCHITECTURE.words("Layers")) == of_package
    of_tests = {f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if any(path.rglob("test_*.py"))}
    (tests,) = (page for page in PAGES if page.path.parent.name == "tests")
    assert set(tests.words("Folders")) == of_tests


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {found for page in PAGES for word in page.code for found in re.findall(r"^make ([a-z-]+)", word)}
    assert named - targets == set()
