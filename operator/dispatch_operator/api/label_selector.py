"""Label selectors, as `kubectl get -l` takes them: which labels an object must have."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

_NAME = "[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:[a-z0-9](?:[-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_NAME}"
_VALUE = f"(?:{_NAME})?"
_REQUIREMENT = re.compile(
    rf"(?P<absent>!)?(?P<key>{_KEY})"
    rf"(?: *(?P<equal>==?|!=) *(?P<value>{_VALUE})"
    rf"| +(?P<set>in|notin) *\( *(?P<values>{_VALUE}(?: *, *{_VALUE})*) *\))?"
)
_BETWEEN = re.compile(" *, *")

FORMS = "KEY=VALUE, KEY!=VALUE, KEY in (A, B), KEY notin (A, B), KEY or !KEY, joined by commas, such as shard=a"
"""What a selector may be made of, in words."""


class LabelSelectorError(ValueError):
    """A text that is no label selector."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What is asked of one label."""

    key: str
    values: Collection[str] | None
    """None for any value."""
    negated: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels fulfil it; what is negated is fulfilled without the label, too."""
        held = self.key in labels and (self.values is None or labels[self.key] in self.values)
        return held is not self.negated


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that labels must fulfil together; without any, every object is selected."""

    text: str = ""
    """As it was written; two that are written differently are two selectors, whatever they select."""
    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a selector.

        Raises:
            LabelSelectorError: It is empty, or not of the forms that Kubernetes knows.
        """
        requirements, position, end = [], 0, len(text)
        while True:
            found = _REQUIREMENT.match(text, position)
            if found is None or (found["absent"] and (found["equal"] or found["set"])):
                raise LabelSelectorError(text)
            requirements.append(_requirement(found))
            position = found.end()
            if position == end:
                return cls(text, tuple(requirements))
            between = _BETWEEN.match(text, position)
            if between is None:
                raise LabelSelectorError(text)
            position = between.end()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether an object with these labels is selected."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def _requirement(found: re.Match[str]) -> Requirement:
    key = found["key"]
    if found["equal"]:
        return Requirement(key, (found["value"],), negated=found["equal"] == "!=")
    if found["set"]:
        values = frozenset(value.strip() for value in found["values"].split(","))
        return Requirement(key, values, negated=found["set"] == "notin")
    return Requirement(key, None, negated=bool(found["absent"]))
