"""Parts of a runtime, by the words that the tests of its rules use."""

from typing import Any

from hypothesis import strategies as st

Object = dict[str, Any]


def job_set(runtime: Object) -> Any:
    return runtime["spec"]["template"]["spec"]


def trainer(runtime: Object) -> Any:
    return job_set(runtime)["replicatedJobs"][0]


def job(runtime: Object) -> Any:
    return trainer(runtime)["template"]["spec"]


def pod(runtime: Object) -> Any:
    return job(runtime)["template"]["spec"]


def node(runtime: Object) -> Any:
    return pod(runtime)["containers"][0]


def another_job(runtime: Object, name: str = "prep", **template: Any) -> None:
    made = {"name": name, "template": {"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}, **template}}
    job_set(runtime)["replicatedJobs"].append(made)


def initializer(runtime: Object, step: str, container: str, **job: Any) -> None:
    another_job(runtime, "prep", metadata={"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": step}})
    made = job_set(runtime)["replicatedJobs"][-1]
    made["template"]["spec"]["template"]["spec"]["containers"] = [{"name": "side"}, {"name": container}]
    made.update(job)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.sampled_from(["", "x", "node", "\ud800\n", 1.5]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "spec", "\ud800", "labels"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]
