"""Label selectors: which labels each selects, and what is none."""

import pytest

from dispatch_operator.api.label_selector import LabelSelector, LabelSelectorError

A, B, NONE = {"shard": "a", "tier": "gold"}, {"shard": "b"}, {"tier": "gold"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("shard=a", [A]),
        ("shard==a", [A]),
        ("shard = a", [A]),
        ("shard!=a", [B, NONE]),
        ("shard in (a, b)", [A, B]),
        ("shard in (a)", [A]),
        ("shard in(a)", [A]),
        ("shard notin (a)", [B, NONE]),
        ("shard notin (a,b)", [NONE]),
        ("shard", [A, B]),
        ("!shard", [NONE]),
        ("shard,tier", [A]),
        ("shard in (a, b),tier=gold", [A]),
        ("tier=gold , !shard", [NONE]),
        ("shard=", []),
        ("dispatch.example/shard!=a", [A, B, NONE]),
        # The words of the grammar may be keys and values, too.
        ("in notin (in)", [A, B, NONE]),
        ("notin", []),
    ],
)
def test_a_selector_selects_what_kubectl_would(text: str, selected: list[dict[str, str]]) -> None:
    selector = LabelSelector.parse(text)
    assert [labels for labels in (A, B, NONE) if selector.matches(labels)] == selected
    assert selector.text == text


def test_an_empty_value_is_a_value() -> None:
    for text in ("shard=", "shard==", "shard in ()", "shard in (a, )"):
        assert LabelSelector.parse(text).matches({"shard": ""})
    assert not LabelSelector.parse("shard=").matches({})


def test_no_selector_selects_everything() -> None:
    assert LabelSelector().matches({})
    assert LabelSelector().matches(A)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "=a",
        "shard=a b",
        "shard=a,",
        ",shard=a",
        "shard===a",
        " shard=a",
        "shard in (a",
        "shard in a",
        "shard within (a)",
        "!shard=a",
        "!shard in (a)",
        "shard>1",
        "-shard",
        "shard-",
        "a/b/c",
        "Bad/key",
        "shard=" + "a" * 64,
        "k" * 64,
        "shard=a\n",
        "shard=ä",
        "--all",
    ],
)
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(LabelSelectorError):
        LabelSelector.parse(text)
