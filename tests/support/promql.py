"""As much of PromQL as the alerts and the dashboard use, evaluated over series that a test writes down.

The words and the meaning are Prometheus': a vector maps label sets to values; `rate` and `increase` are the growth over a
range, without Prometheus' extrapolation.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Samples = Mapping[tuple[str, Labels], Sequence[float]]
"""Values by name and labels, one each minute; the last is now."""
MINUTE = 60.0
SECONDS = {"s": 1.0, "m": MINUTE, "h": 60 * MINUTE}
_TOKEN = re.compile(
    r'\s*(?P<token>[A-Za-z_][A-Za-z0-9_]*|[0-9]+(?:\.[0-9]+)?(?:[smh]\b)?|"[^"]*"|[=!><]=|=~|!~|[-+*/(){}\[\],=<>])'
)
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_AGGREGATIONS: Mapping[str, Callable[[list[float]], float]] = {"sum": sum, "min": min, "max": max}


class Matcher(NamedTuple):
    """One condition of a selector."""

    label: str
    operator: str
    value: str

    def matches(self, labels: Mapping[str, str]) -> bool:
        held = labels.get(self.label, "")
        same = bool(re.fullmatch(self.value, held)) if "~" in self.operator else held == self.value
        return same is not self.operator.startswith("!")


def evaluate(expression: str, samples: Samples) -> Vector:
    """Return the vector that an expression comes to now."""
    return _Evaluation(expression, samples).result()


def names(expression: str) -> set[str]:
    """Return the names of the metrics in an expression."""
    words = re.findall(r"\b(?:dispatch|process)_[a-z_]+\b", expression)
    return set(words)


class _Evaluation:
    """Reads an expression from left to right, and evaluates it meanwhile."""

    def __init__(self, expression: str, samples: Samples) -> None:
        self._tokens = list(_tokens(expression))
        self._samples = samples

    def result(self) -> Vector:
        value = self._comparison()
        assert not self._tokens, self._tokens
        return value

    def _next(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _take(self, *wanted: str) -> str:
        token = self._tokens.pop(0)
        assert not wanted or token in wanted, f"{token}, wanted {wanted}"
        return token

    def _comparison(self) -> Vector:
        left = self._quotient()
        if self._next() not in _COMPARISONS:
            return left
        holds, right = _COMPARISONS[self._take()], float(self._take())
        return {labels: value for labels, value in left.items() if holds(value, right)}

    def _quotient(self) -> Vector:
        left = self._term()
        while self._next() == "/":
            self._take()
            right = self._term()
            left = {labels: value / right[labels] for labels, value in left.items() if right.get(labels)}
        return left

    def _term(self) -> Vector:
        match self._take():
            case "(":
                value = self._comparison()
                self._take(")")
                return value
            case "sum" | "min" | "max" as name:
                return self._aggregation(_AGGREGATIONS[name])
            case "absent":
                return {} if self._argument() else {frozenset(): 1.0}
            case "rate" | "increase" as name:
                return self._growth(per_second=name == "rate")
            case "histogram_quantile":
                return self._quantile()
            case name:
                return {labels: values[-1] for labels, values in self._selected(name).items()}

    def _argument(self) -> Vector:
        self._take("(")
        value = self._comparison()
        self._take(")")
        return value

    def _aggregation(self, combine: Callable[[list[float]], float]) -> Vector:
        by: list[str] = []
        if self._next() == "by":
            self._take()
            self._take("(")
            while self._next() != ")":
                by.append(self._take())
                if self._next() == ",":
                    self._take()
            self._take(")")
        groups: dict[Labels, list[float]] = {}
        for labels, value in self._argument().items():
            groups.setdefault(frozenset(pair for pair in labels if pair[0] in by), []).append(value)
        return {labels: combine(values) for labels, values in groups.items()}

    def _growth(self, *, per_second: bool) -> Vector:
        self._take("(")
        selected = self._selected(self._take())
        self._take("[")
        text = self._take()
        seconds = float(text[:-1]) * SECONDS[text[-1]]
        self._take("]")
        self._take(")")
        steps = int(seconds / MINUTE)
        grown = {labels: values[-1] - values[max(len(values) - 1 - steps, 0)] for labels, values in selected.items()}
        return {labels: value / seconds if per_second else value for labels, value in grown.items()}

    def _quantile(self) -> Vector:
        self._take("(")
        wanted = float(self._take())
        self._take(",")
        groups: dict[Labels, list[tuple[float, float]]] = {}
        for labels, value in self._comparison().items():
            others = frozenset(pair for pair in labels if pair[0] != "le")
            groups.setdefault(others, []).append((float(dict(labels)["le"]), value))
        self._take(")")
        found: Vector = {}
        for labels, buckets in groups.items():
            buckets.sort()
            rank = wanted * buckets[-1][1]
            bounds = [bound for bound, count in buckets if count >= rank and bound != float("inf")]
            if rank:
                # Prometheus interpolates within the bucket; its upper bound is enough here.
                found[labels] = bounds[0] if bounds else buckets[-2][0]
        return found

    def _selected(self, name: str) -> dict[Labels, Sequence[float]]:
        matchers: list[Matcher] = []
        if self._next() == "{":
            self._take()
            while self._next() != "}":
                matchers.append(Matcher(self._take(), self._take("=", "!=", "=~", "!~"), self._take().strip('"')))
                if self._next() == ",":
                    self._take()
            self._take("}")
        return {
            labels: values
            for (held, labels), values in self._samples.items()
            if held == name and all(matcher.matches(dict(labels)) for matcher in matchers)
        }


def _tokens(expression: str) -> Iterator[str]:
    position, end = 0, len(expression.rstrip())
    while position < end:
        found = _TOKEN.match(expression, position)
        assert found, expression[position:]
        yield found["token"]
        position = found.end()
