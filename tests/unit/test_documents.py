"""Files as kubectl reads them, and text that every reader reads back."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dispatch_operator.documents import DocumentError, read_object, to_json, to_yaml
from dispatch_operator.documents.yaml_text import yaml_documents

KIND = ("x/v1", ("Thing",))
HEAD = "apiVersion: x/v1\nkind: Thing\nmetadata: {name: t1}\n"


def read(tmp_path: Path, text: str | bytes, name: str = "file.yaml") -> dict[str, Any]:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return read_object(str(path), *KIND)


def value(text: str) -> Any:
    (document,) = yaml_documents("f", f"v: {text}\n")
    return document["v"]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("yes", True), ("Y", True), ("on", True), ("True", True), ("no", False), ("n", False), ("OFF", False),
        ("yEs", "yEs"), ("~", None), ("", None), ("Null", None), ("1:30", "1:30"), ("190:20:30", "190:20:30"),
        ("2001-01-01", "2001-01-01"), ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"),
        ("12", 12), ("-12", -12), ("+12", 12), ("1_000", 1000), ("017", 15), ("0o17", 15), ("0x1F", 31), ("0b11", 3),
        ("-0b11", -3), ("0", 0), ("08", 8.0), ("0b2", "0b2"), ("0x", "0x"), ("_1", "_1"), ("0xfg", "0xfg"),
        ("9223372036854775807", 2**63 - 1), ("18446744073709551615", 2**64 - 1), ("18446744073709551616", 2.0**64),
        ("-9223372036854775809", -(2.0**63)), ("9" * 100, 1e100), ("0x" + "f" * 70, "0x" + "f" * 70),
        ("1.5", 1.5), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("-1.5E-2", -0.015), ("1e999", "1e999"), (".", "."),
        ("1_0.5", 10.5), (".5_0", ".5_0"), ("+.5", 0.5), ("+", "+"), ("=", "="), ("a b", "a b"),
        ("'yes'", "yes"), ('"12"', "12"), ("!!str 5", "5"), ("!!int '5'", 5), ("!!float 5", 5), ("!!bool yes", True),
        ("!!null ''", None), ("! 12", 12), ('"\\u00e9\\U0001f600"', "é😀"), ("|-\n  a\n  b", "a\nb"),
    ],
)  # fmt: skip
def test_a_scalar_is_what_kubectl_reads(text: str, want: object) -> None:
    found = value(text)
    assert (found, type(found)) == (want, type(want)) or (text == "!!float 5" and found == want)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1: a", {"1": "a"}),
        ("yes: a", {"true": "a"}),
        ("1.5: a", {"1.5": "a"}),
        ("1e9: a", {"1e+09": "a"}),
        ("7e2: a", {"700": "a"}),
        ("a:\tb\t", {"a": "b"}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}", {"a": {"b": 1, "c": 2}, "d": {"b": 3, "c": 2}}),
        ("a: &x {b: 1}\nd: {b: 3, <<: *x}", {"a": {"b": 1}, "d": {"b": 3}}),
        ("a: &x {b: 1}\ne: &y {b: 2}\nd: {<<: [*x, *y]}", {"a": {"b": 1}, "e": {"b": 2}, "d": {"b": 1}}),
        ("a: [1, [2, {b: c}]]", {"a": [1, [2, {"b": "c"}]]}),
        ("'<<': a", {"<<": "a"}),
        ("{a: 1}", {"a": 1}),
    ],
)
def test_a_document_is_what_kubectl_reads(text: str, want: object) -> None:
    assert list(yaml_documents("f", text)) == [want]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3", 'file.yaml:3:1: duplicate key "a"'),
        ("a:\n  b: 1\n  'b': 2", 'file.yaml:3:3: duplicate key "b"'),
        ("1: a\n'1': b", 'duplicate key "1"'),
        ("a: 'x", "file.yaml:1:6: found unexpected end of stream"),
        ("a: [", "file.yaml:2:1: "),
        ("a: b: c", "file.yaml:1:5: mapping values are not allowed in this context"),
        ("a: \x07", "file.yaml:1: YAML has no character U+0007"),
        ("a: .nan", "file.yaml:1:4: .nan is not a number that JSON can hold"),
        ("a: -.inf", "-.inf is not a number that JSON can hold"),
        ("a: !!float .inf", ".inf is not a number that JSON can hold"),
        ("a: !!int x", 'file.yaml:1:4: "x" is not of the type tag:yaml.org,2002:int'),
        ("a: !foo b", "file.yaml:1:4: the tag !foo is not supported"),
        ("a: !!set {b}", "the tag tag:yaml.org,2002:set is not supported"),
        ("a: !!binary aGk=", "the tag tag:yaml.org,2002:binary is not supported"),
        ("[a]: b", "file.yaml:1:1: a key must be a string"),
        ("~: b", "a key must be a string"),
        ("a: &x [*x]", "file.yaml:1:4: an alias must not contain itself"),
        ("a: {<<: 5}", "file.yaml:1:9: << must be an object or a list of objects"),
        ("a: *x", "file.yaml:1:4: found undefined alias"),
        ("a: " + "[" * 300 + "]" * 300, "nested too deeply"),
        ("[" * 50_000, "file.yaml"),
        ("a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(f"b{i}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 10)}]\n" for i in range(7)), "too many values"),
        ("", "must hold one object, not 0"),
        ("---\n---\n", "must hold one object, not 0"),
        (HEAD + "---\n" + HEAD, "must hold one object, not 2"),
        ("- a", "must hold an object, not a list"),
        ("text", 'must hold an object, not "text"'),
        ("kind: Thing", 'must be a Thing of x/v1, not "Thing" of null'),
        ("apiVersion: x/v1\nkind: Other", 'must be a Thing of x/v1, not "Other" of "x/v1"'),
        ("apiVersion: x/v1\nkind: [Thing]", "not a list of"),
        ("apiVersion: x/v1\nkind: Thing", "metadata.name must be a string"),
        ("apiVersion: x/v1\nkind: Thing\nmetadata: {name: 5}", "metadata.name must be a string"),
        ("apiVersion: x/v1\nkind: Thing\nmetadata: {name: ''}", "metadata.name must be a string"),
        ("apiVersion: x/v1\nkind: Thing\nmetadata: {name: t1, namespace: 5}", "metadata.namespace must be a string, not 5"),
        ("apiVersion: x/v1\nkind: Thing\nmetadata: {name: t1, uid: []}", "metadata.uid must be a string, not a list"),
        ("apiVersion: x/v1\nkind: Thing\nmetadata: {name: t1, generation: {a: 1}}", "metadata.generation must be an integer, not an object"),
        ("apiVersion: x/v1\nkind: Thing\nmetadata: {name: t1, generation: true}", "metadata.generation must be an integer, not true"),
        ("apiVersion: x/v1\nkind: Thing\nmetadata: {name: t1, generation: '1'}", 'metadata.generation must be an integer, not "1"'),
        ("metadata: {name: ${NAME}, a: b}", 'line 1 has "${NAME}": it looks like a template, which must be rendered first'),
        ("a: 1\nb: {{ .Values.b }}", 'line 2 has "{{ .Values.b }}": it looks like a template'),
        ("{{- if .Values.x }}\na: 1", 'line 1 has "{{- if .Values.x }}": it looks like a template'),
        ('{"a": 1}\n{"b": 2}\n', "file.yaml:2:1: Extra data: a file must hold one JSON object, and more follows the first"),
        ('{"a": 1} {"b": 2}', "file.yaml:1:10: Extra data: a file must hold one JSON object"),
        (b"a: \xff", "is not UTF-8, at byte 3"),
    ],
)  # fmt: skip
def test_names_the_file_and_the_place_of_what_is_wrong(tmp_path: Path, text: str | bytes, says: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "file.yaml"))
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1,\n "a": 2}', 'file.json:2:2: duplicate key "a"'),
        ('{"a": 1,\n "a": "\\/" , "b\\/": 1}', 'file.json:2:2: duplicate key "a"'),
        ('{"b": 1, "a\\ud83d": 1, "a\\ud83d": 2}', 'file.json: duplicate key "a\\ud83d"'),
        ('{"a": NaN}', "NaN is not a number that JSON can hold"),
        ('{"a": -Infinity}', "-Infinity is not a number that JSON can hold"),
        ('{"a": 1e999}', '"1e999" is not a number that JSON can hold'),
        ('{"a": ' + "9" * 5000 + "}", "is not a number that JSON can hold"),
        ('{"a": 1', "file.json:1:8: "),
        ("{a: 1}", "file.json:1:2: "),
        ('{"a": 1} {}', "file.json:1:10: Extra data"),
        ('{"a":' * 100_000, "is nested too deeply"),
    ],
)
def test_json_has_its_own_faults(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(tmp_path, text, "file.json")
    assert says in str(caught.value)


def test_json_is_read_as_json(tmp_path: Path) -> None:
    head = '{"apiVersion": "x/v1", "kind": "Thing", "metadata": {"name": "n"}, '
    for name in ("file.json", "file.yaml"):
        document = read(
            tmp_path, head + r'"a": ["\ud83d\ude00", "\ud800", 1, 1.0, -0, 18446744073709551616, "\t"]}', name
        )
        assert document["a"] == ["😀", "\ud800", 1, 1.0, 0, 2.0**64, "\t"]
        assert [type(item) for item in document["a"][2:6]] == [int, float, int, float]


def test_a_flow_mapping_is_yaml_although_it_begins_like_json(tmp_path: Path) -> None:
    text = "{apiVersion: x/v1, kind: Thing, metadata: {name: t1, namespace: null}, v: yes}"
    assert read(tmp_path, text)["v"] is True


def test_a_flow_mapping_with_quotes_and_a_comment_is_yaml_although_it_begins_like_json(tmp_path: Path) -> None:
    assert read(tmp_path, '{"apiVersion": "x/v1", "kind": "Thing", "metadata": {"name": "n"}} # yes')["kind"] == "Thing"


def test_a_template_that_parses_and_a_duplicate_key_in_one_are_taken_as_they_are(tmp_path: Path) -> None:
    assert read(tmp_path, HEAD + "v: ${VALUE}")["v"] == "${VALUE}"
    with pytest.raises(DocumentError) as caught:
        read(tmp_path, HEAD + "v: ${VALUE}\nv: 1")
    assert str(caught.value).endswith('duplicate key "v"')


@pytest.mark.parametrize("empty", ["''", "null"])
def test_an_empty_namespace_or_uid_is_absent(tmp_path: Path, empty: str) -> None:
    text = f"apiVersion: x/v1\nkind: Thing\nmetadata: {{name: t1, namespace: {empty}, uid: {empty}, generation: null}}"
    assert read(tmp_path, text)["metadata"] == {"name": "t1", "generation": None}


def test_a_byte_order_mark_and_empty_documents_are_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbf---\n" + HEAD.encode() + b"---\n")["kind"] == "Thing"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="No such file or directory"):
        read_object(str(tmp_path / "missing"), *KIND)
    with pytest.raises(DocumentError, match="Is a directory"):
        read_object(str(tmp_path), *KIND)


AMBIGUOUS = [
    "yes", "y", "N", "on", "Off", "true", "null", "Null", "~", "", "1e3", "0x10", "0o17", "08", "017", "1_000", "1:30",
    "2024-01-01", ".inf", "-.INF", ".nan", "Infinity", "NaN", "+1", "-", "--", "---", "...", "? a", ": a", "a: b", "a:",
    "a :b", "a #b", "#a", "- a", "!x", "&a", "*a", "%a", "@a", "`a", "'", '"', "{", "}", "[", "]", ",", "|", ">", "=",
    "<<", " a", "a ", "a\n", "\na", "a\nb", "a\n\nb\n", "a\n\n", "a \nb", "a\n b", "  \n", "a\tb", "a\r\nb", "\x07",
    "\x85", "\xa0", "\u2028", "\ufeff", "\ufffe", "é", "😀", "T", "x" * 300, "a  b", "key: |",
]  # fmt: skip


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_a_string_is_written_as_one_for_every_reader(text: str) -> None:
    for document in ({"v": text}, {text: "v"}, {"v": [text, {text: text}]}):
        written = to_yaml(document)
        assert written.isascii()
        assert list(yaml_documents("f", written)) == [document]
        assert list(yaml.safe_load_all(written)) == [document]
        assert yaml.load(written, Yaml12) == document  # noqa: S506 - a loader of plain scalars


class Yaml12(yaml.SafeLoader):
    """A reader of YAML 1.2's core schema."""


def _as_core_schema() -> None:
    import re  # noqa: PLC0415 - only for this table

    words = {
        "null": r"~|null|Null|NULL|",
        "bool": r"true|True|TRUE|false|False|FALSE",
        "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
        "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    }
    Yaml12.yaml_implicit_resolvers = {
        None: [(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})$")) for tag, pattern in words.items()],
        "": [("tag:yaml.org,2002:null", re.compile("$"))],
    }


_as_core_schema()

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
documents = st.dictionaries(st.text(), json_values, max_size=5)


@given(st.lists(documents, min_size=1, max_size=3))
def test_what_is_written_is_read_back_exactly(written: list[dict[str, Any]]) -> None:
    assert list(yaml_documents("f", to_yaml(*written))) == written
    assert json.loads(to_json(*written)) == {"apiVersion": "v1", "kind": "List", "items": written}


def test_equal_parts_are_written_out() -> None:
    part = {"a": [1]}
    assert "&" not in to_yaml({"x": part, "y": part})


def test_a_script_is_written_as_lines() -> None:
    assert to_yaml({"v": "if a\nthen\n  b\n\nfi\n"}) == "v: |\n  if a\n  then\n    b\n\n  fi\n"


def test_keys_keep_their_order() -> None:
    assert to_yaml({"b": 1, "a": 2}) == "b: 1\na: 2\n"
