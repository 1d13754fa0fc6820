"""The generated pages of the documentation are current, and leave nothing out."""

import re
from pathlib import Path

import yaml

from dispatch_operator.api.crds import crds
from dispatch_operator.cli.main import COMMANDS
from dispatch_operator.plugin.main import COMMANDS as OF_THE_PLUGIN
from reference.__main__ import write
from reference.chart import CHART
from support.pages import Page, words

FILES = Path(__file__).parents[2] / "docs" / "reference"


def test_the_pages_are_current(tmp_path: Path) -> None:
    write(tmp_path)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert written == {path.name: path.read_text() for path in FILES.iterdir()}, "run: make reference"


def test_every_field_of_the_kinds_is_on_its_page() -> None:
    for crd in crds():
        page = Page(FILES / f"{crd['spec']['names']['singular']}.md")
        root = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        for heading, schema in {"spec": root["spec"], "status": root["status"]}.items():
            assert page.words(heading) == list(schema["properties"])
    start = Page(FILES / "dispatchstart.md")
    assert "dispatch/Image" in start.words("spec.request.spec.extensions")


def test_every_value_of_the_chart_is_on_its_page_with_its_default() -> None:
    page = Page(FILES / "chart-values.md")
    rows = {words(row[0])[0]: row for row in page.table("Values of the chart")}
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert {path.partition(".")[0] for path in rows} == set(values)
    assert rows["image.digest"][1:3] == ["string", '`""`']
    assert "one may be evicted" in rows["replicas"][3]
    assert rows["resources"][2] == "see below"
    assert (
        yaml.safe_load(re.findall(r"default of `resources`:\n\n```yaml\n(.*?)```", page.text, re.DOTALL)[0])
        == (values["resources"])
    )


def test_every_command_is_on_its_page() -> None:
    headings = Page(FILES / "command-line.md").headings
    wanted = [
        *(f"dispatch-operator {name}" for name in COMMANDS),
        *(f"kubectl dispatch {name}" for name in OF_THE_PLUGIN),
    ]
    assert [name for name in wanted if name not in headings] == []
