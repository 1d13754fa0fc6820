"""The command `kubectl dispatch completion`."""

import click
from click.shell_completion import get_completion_class

from dispatch_operator.cli.output import Command, print_out
from dispatch_operator.plugin import main as program


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print a script that completes this in a shell.

    It is for kubectl-dispatch, called by that name. After "kubectl dispatch" kubectl completes by itself, with its own
    completion, when the program kubectl_complete-dispatch is on PATH, which comes along.

    \b
    Examples:
      source <(kubectl dispatch completion bash)
      kubectl dispatch completion fish > ~/.config/fish/completions/kubectl-dispatch.fish
    """  # noqa: D301 - click's own mark of a paragraph that is not wrapped.
    made = get_completion_class(shell)
    if made is None:
        raise click.ClickException(f"{shell} can't be completed")
    print_out(made(program.main, {}, program.PROGRAM, program.COMPLETE_VARIABLE).source() + "\n")
