"""The Kubernetes client's models and APIs are imported when they are asked for, and are all there."""

import json
import os
import subprocess
import sys
from pathlib import Path

ON_DEMAND = """
from dispatch_operator.kube.on_demand import import_models_on_demand
import_models_on_demand()
"""
EVERYTHING = """
import json, operator
from kubernetes_asyncio import client

found = {"version": client.__version__}
for name in ("api", "models", "api.version_api", "models.v1_pod"):
    module = operator.attrgetter(name)(client)
    assert module.__name__ == f"{client.__name__}.{name}"
    found[name] = module.__file__
for package in (client, client.api, client.models):
    exported = {}
    exec(f"from {package.__name__} import *", exported)
    for name in package.__all__:
        assert exported[name] is getattr(package, name)
        found[f"{package.__name__}.{name}"] = f"{exported[name].__module__}.{exported[name].__qualname__}"
print(json.dumps(found))
"""
OPERATOR = """
import sys
import dispatch_operator.cli.run
from kubernetes_asyncio import client

def count():
    generated = ("kubernetes_asyncio.client.api.", "kubernetes_asyncio.client.models.")
    return sum(name.startswith(generated) for name in sys.modules)

before = count()
lease = client.V1Lease(spec=client.V1LeaseSpec(holder_identity="me")).to_dict()
print(before, lease["spec"]["holder_identity"], client.CoordinationV1Api.__name__, count())
"""


def python(code: str, path: Path | None = None) -> str:
    """Run code in a fresh interpreter, and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(path or "")}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_everything_that_the_library_exports_is_found_on_demand() -> None:
    want, got = json.loads(python(EVERYTHING)), json.loads(python(ON_DEMAND + EVERYTHING))
    assert len(want) > 1500
    assert got == want


def test_the_operator_imports_only_what_it_uses() -> None:
    before, holder, api, after = python(ON_DEMAND + OPERATOR).split()
    assert (holder, api) == ("me", "CoordinationV1Api")
    assert 0 < int(before) < int(after) < 20


LOADED = """
print(*(name.rpartition(".")[2] for name in sys.modules if name.startswith(models.__name__ + ".")))
"""
IMPORTED = f"""
import sys
from kubernetes_asyncio.client import models
{LOADED}
"""
USED = f"""
assert models.Third().there is models.THERE
assert not hasattr(models, "Fourth")
{LOADED}
"""


def test_a_line_of_another_form_is_executed_as_it_stands(tmp_path: Path) -> None:
    models = tmp_path / "kubernetes_asyncio" / "client" / "models"
    models.mkdir(parents=True)
    for package in (models.parents[1], models.parent):
        (package / "__init__.py").touch()
    for name in ("first", "second", "third"):
        (models / f"{name}.py").write_text(f"class {name.title()}:\n    there = True\n")
    (models / "__init__.py").write_text(
        "from kubernetes_asyncio.client.models.first import First\n"
        "from kubernetes_asyncio.client.models.second import (\n    Second,\n)\n"
        "from kubernetes_asyncio.client.models.third import Third as Third\n"
        "THERE = True\n"
    )
    assert python(ON_DEMAND + IMPORTED + USED, tmp_path).splitlines() == ["second", "second third"]
    # What Python keeps of the package's bytecode is the whole of it.
    assert python(IMPORTED, tmp_path) == "first second third"
