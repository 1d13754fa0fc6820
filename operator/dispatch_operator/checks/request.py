"""What is wrong in a request, whatever backend and runtime it meets (docs/contract.md, Request fields)."""

import re
from collections.abc import Callable, Iterator

from dispatch_operator.api import duration
from dispatch_operator.api.enums import ErrorClass
from dispatch_operator.api.group import DISPATCH_ENV
from dispatch_operator.api.models.reading import Fault, dotted
from dispatch_operator.api.models.start import IMAGE, RUNTIME_REF, StartReading, StartRequest
from dispatch_operator.api.names import is_job, is_submission
from dispatch_operator.api.quoting import name as shown_name
from dispatch_operator.api.quoting import quote
from dispatch_operator.checks.problems import Problem

MOST_GENERATIONS = 18_000_000
MOST_COMMAND_ITEMS = 124
LONGEST_STRING = 131_071
"""Bytes of one argument or ``KEY=value`` that Linux can start a program with."""
MOST_ENV = 122
MOST_ENV_WITH_WORK_DIR = 121
LONGEST_WORK_DIR = 4_096
MOST_NODES = 100_000
MOST_OF_A_NODE = 2_147_483_647
LONGEST_TIME_LIMIT = 9_223_372_036
"""Whole seconds."""
LONGEST_IMAGE = 500

SHELL_ENV = frozenset(
    {
        "_", "BASH", "BASHOPTS", "BASHPID", "BASH_ARGV0", "BASH_COMMAND", "BASH_EXECUTION_STRING", "BASH_SUBSHELL",
        "BASH_VERSINFO", "BASH_VERSION", "COMP_WORDBREAKS", "EPOCHREALTIME", "EPOCHSECONDS", "HISTCMD", "IFS",
        "LINENO", "OLDPWD", "OPTERR", "OPTIND", "POSIXLY_CORRECT", "PPID", "PS1", "PS2", "PS4", "PWD", "RANDOM",
        "SHELLOPTS", "SHLVL", "SRANDOM",
    },
)  # fmt: skip
"""Names that dash, busybox sh or bash as sh change or drop on the way to the job."""

_C_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_BUCKET = re.compile(r"s3://[^/?#\s]")
# Trainer's snapshot of the runtime is YAML, which can't carry these (and would change U+0085).
_FORBIDDEN = re.compile("[\x00\x7f-\x9f\ufffe\uffff\ud800-\udfff]")
_NO_IMAGE_CHARACTER = re.compile(rf"\s|[\x00-\x1f]|{_FORBIDDEN.pattern}")

Text = Iterator[str]


def job(request: StartRequest) -> Text:
    """The job names objects and labels, in lower case too."""
    if not is_job(request.job):
        yield (
            f"{quote(request.job)} is not a ULID: 26 characters of 0-9 and A-Z without I, L, O and U, "
            "the first one 0 to 7"
        )


def generation(request: StartRequest) -> Text:
    """The generation is the highest part of the epoch, which must fit 64 bits."""
    if not 0 <= request.generation <= MOST_GENERATIONS:
        yield f"must be 0 to 18,000,000, not {quote(request.generation)}"


def submission(request: StartRequest) -> Text:
    """The submission has six digits in the epoch."""
    if not is_submission(request.submission):
        yield f"must be 1 to 999,999, not {quote(request.submission)}"


def attempt(request: StartRequest) -> Text:
    """The attempt is a count."""
    if request.attempt < 0:
        yield f"must be 0 or more, not {quote(request.attempt)}"


def command(request: StartRequest) -> Text:
    """The command is what the prologue executes."""
    items = request.spec.command
    if not items:
        yield "must have at least one item, the program"
    elif not items[0] or items[0].startswith("-"):
        yield f"its first item must be a program, neither empty nor beginning with -, not {quote(items[0])}"
    if len(items) > MOST_COMMAND_ITEMS:
        yield f"has {len(items):,} items, and at most {MOST_COMMAND_ITEMS} are possible"
    for index, item in enumerate(items):
        if _byte_length(item) > LONGEST_STRING:
            yield f"item {index} has {_byte_length(item):,} bytes, and Linux starts a program with at most 131,071"
        yield from _forbidden(f"item {index}", item)


def env(request: StartRequest) -> Text:
    """Every variable must arrive as it was sent, and leave room for dispatch's own."""
    entries, most = request.spec.env, MOST_ENV_WITH_WORK_DIR if request.spec.work_dir else MOST_ENV
    if len(entries) > most:
        yield f"has {len(entries):,} entries, and at most {most} are possible {_with_or_without(request)} workDir"
    for key, value in sorted(entries.items()):
        yield from _env_name(key)
        if _byte_length(key) + 1 + _byte_length(value) > LONGEST_STRING:
            size = _byte_length(key) + 1 + _byte_length(value)
            yield f"{quote(key)} and its value have {size:,} bytes, and Linux starts a program with at most 131,071"
        yield from _forbidden(f"the value of {quote(key)}", value)


def work_dir(request: StartRequest) -> Text:
    """The working directory must be one that Linux and Trainer can carry."""
    path = request.spec.work_dir
    if _byte_length(path) > LONGEST_WORK_DIR:
        yield f"has {_byte_length(path):,} bytes, and at most 4,096 are possible"
    yield from _forbidden("the path", path)


def nodes(request: StartRequest) -> Text:
    """The nodes are the completions of an indexed Job."""
    if not 1 <= request.spec.nodes <= MOST_NODES:
        yield f"must be 1 to 100,000, not {quote(request.spec.nodes)}"


def gpus_per_node(request: StartRequest) -> Text:
    """GPUs are a quantity of the extended resource."""
    if not 0 <= request.spec.gpus_per_node <= MOST_OF_A_NODE:
        yield f"must be 0 to 2,147,483,647, not {quote(request.spec.gpus_per_node)}"


def procs_per_node(request: StartRequest) -> Text:
    """Processes are Trainer's numProcPerNode, an int32."""
    if not 0 <= request.spec.procs_per_node <= MOST_OF_A_NODE:
        yield f"must be 0 to 2,147,483,647, not {quote(request.spec.procs_per_node)}"


def time_limit(request: StartRequest) -> Text:
    """The time limit becomes whole seconds of activeDeadlineSeconds."""
    text = request.spec.time_limit
    if not text:
        return
    try:
        nanoseconds = duration.parse(text)
    except ValueError as error:
        yield f"{quote(text)} {error}"
        return
    if nanoseconds < 0:
        yield f"{quote(text)} is negative"
    elif nanoseconds > LONGEST_TIME_LIMIT * duration.SECOND:
        yield f"{quote(text)} is longer than 9,223,372,036 seconds"


def checkpoint(request: StartRequest) -> Text:
    """The checkpoint changes nothing here, but a wrong one is the job's loss later."""
    place = request.spec.checkpoint
    if place and not place.startswith("/") and not _BUCKET.match(place):
        yield f"{quote(place)} is neither an absolute path nor an s3:// URL with a bucket"


def image(request: StartRequest) -> Text:
    """The image that the job runs in is not known without dispatch/Image."""
    extension = request.spec.extensions.image
    if extension is None:
        yield "this extension is required: it names the image that the job runs in"
        return
    if not extension.ref:
        yield "ref must name the image that the job runs in"
    if len(extension.ref) > LONGEST_IMAGE:
        yield f"ref has {len(extension.ref):,} characters, and Trainer takes at most {LONGEST_IMAGE}"
    if found := _NO_IMAGE_CHARACTER.search(extension.ref):
        yield f"ref {quote(extension.ref)} has the character {_code_point(found[0])}, which no image has"


def runtime_ref(request: StartRequest) -> Text:
    """The runtime that is copied is not known without kubeflow/RuntimeRef."""
    extension = request.spec.extensions.runtime_ref
    if extension is None:
        yield "this extension is required: it names the runtime that the job runs on"
    elif not extension.name:
        yield "name must be that of a runtime"


FIELDS: tuple[tuple[str, Callable[[StartRequest], Text]], ...] = (
    ("job", job),
    ("generation", generation),
    ("submission", submission),
    ("attempt", attempt),
    ("command", command),
    ("env", env),
    ("workDir", work_dir),
    ("nodes", nodes),
    ("gpusPerNode", gpus_per_node),
    ("procsPerNode", procs_per_node),
    ("timeLimit", time_limit),
    ("checkpoint", checkpoint),
    (IMAGE, image),
    (RUNTIME_REF, runtime_ref),
)
"""Every field that can be refused, in the contract's order."""


def request_problems(reading: StartReading) -> Iterator[Problem]:
    """Yield everything that is wrong with a request by itself: wrong types, then values, then extensions."""
    for fault in reading.faults:
        yield _fault_problem(fault)
    for field, check in FIELDS:
        for text in check(reading.request):
            yield Problem(ErrorClass.INVALID, field, text)
    for extension in reading.request.spec.extensions.unknown:
        shown = shown_name(extension)
        yield Problem(ErrorClass.UNSUPPORTED, shown, f"extension {shown} is not supported on Kubeflow")


def _fault_problem(fault: Fault) -> Problem:
    """Name a fault by its field, its extension, or by ``request`` or ``spec`` themselves."""
    steps = fault.path
    for holder in ("request", "spec", "extensions"):
        if steps[0] == holder and len(steps) > 1:
            steps = steps[1:]
    field, inner = str(steps[0]), steps[1:]
    where = f"item {inner[0]} " if inner and isinstance(inner[0], int) else f"{dotted(inner)} " if inner else ""
    return Problem(ErrorClass.INVALID, shown_name(field), where + fault.text)


def _env_name(key: str) -> Text:
    if not _C_IDENTIFIER.fullmatch(key):
        yield f"the name {quote(key)} is not a C identifier: letters, digits and _, not beginning with a digit"
    if key.startswith(DISPATCH_ENV):
        yield f"the name {quote(key)} begins with {DISPATCH_ENV}, which is dispatch's own"
    if key in SHELL_ENV:
        yield f"the name {quote(key)} is one that a shell changes on the way to the job"


def _forbidden(what: str, text: str) -> Text:
    if found := _FORBIDDEN.search(text):
        yield f"{what} has the character {_code_point(found[0])} at {found.start()}, which Trainer can't carry"


def _with_or_without(request: StartRequest) -> str:
    return "with" if request.spec.work_dir else "without"


def _code_point(character: str) -> str:
    return f"U+{ord(character):04X}"


def _byte_length(text: str) -> int:
    """Return the length in UTF-8; an unpaired surrogate, refused elsewhere, counts as three bytes."""
    return len(text.encode("utf-8", "surrogatepass"))
