"""A file's text with values changed: everything else stays, comments too."""

from typing import Any

import pytest

from dispatch_operator.api.edit import REMOVED, Edit
from dispatch_operator.documents.round_trip import rewritten

TEXT = """\
# licence

---
# about the object
apiVersion: v1   # eol version
kind: 'X'
spec:
  # about a
  a: 1   # eol a

  # about b
  b:
    # in b
    c: "x"   # eol c
    d: yes
    # after d
  # about e
  e:
    - name: n   # first
      # about args
      args:
        - |
          run
      # about v
      v: 0x10
      # end of item
    # about item 2
    - name: m
      resources:
        limits:
          gpu: 8    # all
        # about requests
        requests:
          cpu: 1_000
  # about f
  f: {x: 1, y: 017} # flow
# trailing
"""


def changed(text: str, *edits: tuple[tuple[Any, ...], Any]) -> tuple[list[str], list[str]]:
    """Return the lines that went away, and those that are new."""
    old, new = text.splitlines(), rewritten(text, [Edit(*edit) for edit in edits]).splitlines()
    return [line for line in old if line not in new], [line for line in new if line not in old]


@pytest.mark.parametrize("text", [TEXT, "a:\n- b: 1\n  # on c\n  c:\n  - 2\n# end\n", "a: 1\n", "---\na:\n  - 1\n"])
def test_a_text_without_edits_stays_what_it_is(text: str) -> None:
    assert rewritten(text, []) == text


@pytest.mark.parametrize(
    ("edits", "gone", "new"),
    [
        ([(("spec", "a"), 5)], ["  a: 1   # eol a"], ["  a: 5   # eol a"]),
        ([(("spec", "b", "c"), "Never")], ['    c: "x"   # eol c'], ['    c: "Never" # eol c']),
        ([(("spec", "z"), 0)], [], ["  z: 0"]),
        ([(("spec", "e", 0, "z"), 0)], ["    - name: n   # first"], ["    - z: 0", "      name: n   # first"]),
        ([(("spec", "x", "y", "z"), "v")], [], ["  x:", "    y:", "      z: v"]),
        ([(("spec", "f", "z"), 0)], ["  f: {x: 1, y: 017} # flow"], ["  f: {z: 0, x: 1, y: 017} # flow"]),
        ([(("spec", "a"), REMOVED)], ["  a: 1   # eol a"], []),
        ([(("spec", "b", "c"), REMOVED)], ['    c: "x"   # eol c'], []),
        ([(("spec", "b", "d"), REMOVED)], ["    d: yes"], []),
        ([(("spec", "e", 0, "args"), REMOVED)], ["      args:", "        - |", "          run"], []),
        ([(("spec", "e", 0, "v"), REMOVED)], ["      v: 0x10"], []),
        ([(("spec", "f"), REMOVED)], ["  f: {x: 1, y: 017} # flow"], []),
        (
            [(("spec", "e", 1, "resources", "limits", "gpu"), REMOVED)],
            ["        limits:", "          gpu: 8    # all"],
            [],
        ),
        (
            [
                (("spec", "e", 1, "resources", "limits", "gpu"), REMOVED),
                (("spec", "e", 1, "resources", "requests", "cpu"), REMOVED),
            ],
            [
                "      resources:", "        limits:", "          gpu: 8    # all", "        # about requests",
                "        requests:", "          cpu: 1_000",
            ],
            [],
        ),
    ],
)  # fmt: skip
def test_an_edit_changes_its_own_lines_alone(
    edits: list[tuple[tuple[Any, ...], Any]], gone: list[str], new: list[str]
) -> None:
    assert changed(TEXT, *edits) == (gone, new)


def test_comments_below_what_is_removed_outlive_it() -> None:
    text = "a:\n- b: 1\n  c: |\n    x\n  d: 2 # two\n# end\n"
    assert rewritten(text, [Edit(("a", 0, "d"), REMOVED)]) == "a:\n- b: 1\n  c: |\n    x\n# end\n"
    assert rewritten("a: 1\nb: 2\n# end\n", [Edit(("b",), REMOVED)]) == "a: 1\n# end\n"
    assert (
        rewritten("a:\n- 1\n# two\n- 2\n# three\n- 3\n", [Edit(("a", 1), REMOVED)]) == "a:\n- 1\n# two\n# three\n- 3\n"
    )
    assert rewritten("a: {b: 1}\n", [Edit(("a", "b"), REMOVED)]) == "a: {}\n"
