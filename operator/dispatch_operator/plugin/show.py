"""Reads a Start, and prints its tree or why it does not run."""

from collections.abc import Iterator

from dispatch_operator.api.quoting import escaped
from dispatch_operator.plugin import facts, printing
from dispatch_operator.plugin.explanation import Explanation, explanation
from dispatch_operator.plugin.session import Session
from dispatch_operator.plugin.tree import Node, tree

INDENT = "  "


async def status(session: Session, name: str, *, as_json: bool) -> None:
    """Print the tree of a Start.

    Raises:
        UnreadableError: There is none of that name.
        ApiError: It can't be read.
    """
    found = await facts.all_of(session, await session.start(name))
    root = tree(found)
    notes = tuple(f"not looked at: {line}" for line in found.unread)
    if as_json:
        printing.print_json({**root.as_json(), "notes": list(notes)})
    elif console := printing.console():
        from rich.text import Text  # noqa: PLC0415 - only needed on a terminal.
        from rich.tree import Tree  # noqa: PLC0415 - the same.

        def grown(node: Node) -> Tree:
            label = Text.assemble(
                (escaped(node.reference), "bold"),
                "  ",
                (escaped(node.state), printing.style_of(node.state)),
                *([f"  {escaped(node.waits_for)}"] if node.waits_for else []),
            )
            made = Tree(label)
            made.children.extend(grown(child) for child in node.children)
            return made

        console.print(grown(root))
        for note in notes:
            console.print(Text(escaped(note), printing.QUIET))
    else:
        printing.print_lines([*_lines(root), *notes])


def _lines(node: Node, depth: int = 0) -> Iterator[str]:
    told = f": {node.waits_for}" if node.waits_for else ""
    yield f"{INDENT * depth}{node.reference} {node.state}{told}"
    for child in node.children:
        yield from _lines(child, depth + 1)


async def explain(session: Session, name: str, *, as_json: bool) -> None:
    """Print why a Start does not run, or how it ended, and what to do.

    Raises:
        UnreadableError: There is none of that name.
        ApiError: It can't be read.
    """
    found = await facts.why(session, await session.start(name))
    told = explanation(found, session.kubectl, session.now)
    if as_json:
        printing.print_json(told.as_json())
    elif console := printing.console():
        from rich.padding import Padding  # noqa: PLC0415 - only needed on a terminal.
        from rich.text import Text  # noqa: PLC0415 - the same.

        for depth, text, style in _paragraphs(told):
            # A command is copied: it must not be broken.
            is_command = style == printing.COMMAND
            console.print(Padding(Text(escaped(text), style), (0, 0, 0, 2 * depth)), soft_wrap=is_command)
    else:
        printing.print_lines(f"{INDENT * depth}{text}" if text else "" for depth, text, _ in _paragraphs(told))


def _paragraphs(told: Explanation) -> Iterator[tuple[int, str, str]]:
    """Yield the depth, the text and the style of each paragraph."""
    called = f"{told.name} is {told.phase}" if told.phase else told.name
    yield 0, f"{called}: {told.summary}.", printing.style_of(told.phase)
    for problem in told.problems:
        yield 1, problem, ""
    if told.steps:
        yield 0, "", ""
        yield 0, "What to do:", "bold"
    for number, step in enumerate(told.steps, 1):
        yield 1, f"{number}. {step.text}" + (":" if step.command else "."), ""
        if step.command:
            yield 2, f" {step.command}", printing.COMMAND
    if told.notes:
        yield 0, "", ""
    for note in told.notes:
        yield 0, f"note: {note}", printing.QUIET
