"""What an answer, or none, says about what happened: over real HTTP, against kmock."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import kmock
import pytest
from kubernetes_asyncio import client

from dispatch_operator.api.kinds import Kind
from dispatch_operator.kube import client as kube
from dispatch_operator.kube.client import Client, NoClusterError, connected, in_cluster
from dispatch_operator.kube.errors import ApiError, Effect, PageTooLargeError

PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs"
BODY = {"metadata": {"name": "job"}}


@pytest.fixture
async def server() -> AsyncIterator[kmock.RawHandler]:
    async with kmock.RawHandler() as handler, kmock.Server(handler):
        yield handler


@pytest.fixture
async def kubernetes(server: kmock.RawHandler) -> AsyncIterator[Client]:
    configuration = client.Configuration()
    configuration.host = str(server.url).rstrip("/")
    configuration.api_key["BearerToken"] = "Bearer secret"
    async with client.ApiClient(configuration) as api, aclosing(Client(api)) as made:
        yield made


def status(code: int, reason: str, message: str) -> dict[str, Any]:
    return {"kind": "Status", "code": code, "reason": reason, "message": message}


async def failed(kubernetes: Client, *, seconds: float = 5) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await kubernetes.create("TrainJob", "team-a", BODY, timeout=seconds)
    return caught.value


@pytest.mark.parametrize(
    ("code", "reason", "message", "want"),
    [
        (400, "BadRequest", "no", Effect.DEFINITE),
        (401, "Unauthorized", "no", Effect.NOTHING_HAPPENED),
        (403, "Forbidden", "exceeded quota", Effect.DEFINITE),
        (403, "Forbidden", "status unknown for quota: new, resources: pods", Effect.NOTHING_HAPPENED),
        (403, "Forbidden", 'User "u" cannot create resource "trainjobs" in API group "g"', Effect.NOTHING_HAPPENED),
        (404, "NotFound", 'namespaces "team-a" not found', Effect.DEFINITE),
        (405, "MethodNotAllowed", "no", Effect.DEFINITE),
        (408, "Timeout", "no", Effect.UNANSWERED),
        (409, "AlreadyExists", "it exists", Effect.DEFINITE),
        (409, "Conflict", "changed", Effect.NOTHING_HAPPENED),
        (413, "RequestEntityTooLarge", "no", Effect.DEFINITE),
        (422, "Invalid", "no", Effect.DEFINITE),
        (429, "TooManyRequests", "no", Effect.NOTHING_HAPPENED),
        (500, "InternalError", 'failed calling webhook "x"', Effect.NOTHING_HAPPENED),
        (500, "InternalError", "etcdserver: request timed out", Effect.UNANSWERED),
        (502, "", "bad gateway", Effect.UNANSWERED),
        (503, "ServiceUnavailable", "no", Effect.UNANSWERED),
        (504, "Timeout", "no", Effect.UNANSWERED),
    ],
)
async def test_an_answer_is_definite_or_changed_nothing_or_leaves_it_open(
    server: kmock.RawHandler, kubernetes: Client, code: int, reason: str, message: str, want: Effect
) -> None:
    server[f"post {PATH}"] << code << status(code, reason, message)
    error = await failed(kubernetes)
    assert (error.effect, error.status, error.reason) == (want, code, reason)
    assert message in str(error)
    assert "create TrainJob team-a/job failed" in str(error)


async def test_a_missing_permission_names_verb_and_resource(server: kmock.RawHandler, kubernetes: Client) -> None:
    text = 'trainjobs is forbidden: User "u" cannot create resource "trainjobs" in API group "trainer.kubeflow.org"'
    server[f"post {PATH}"] << 403 << status(403, "Forbidden", text)
    assert "the operator may not create trainjobs" in str(await failed(kubernetes))


async def test_retry_after_is_honoured(server: kmock.RawHandler, kubernetes: Client) -> None:
    server[f"post {PATH}"] << 429 << status(429, "TooManyRequests", "slow down") << {"Retry-After": "7"}
    assert (await failed(kubernetes)).retry_after == 7.0


async def test_no_answer_in_time_leaves_it_open(server: kmock.RawHandler, kubernetes: Client) -> None:
    server[f"post {PATH}"] << (lambda: asyncio.Event().wait())
    error = await failed(kubernetes, seconds=0.05)
    assert (error.effect, error.message) == (Effect.UNANSWERED, "no answer in time")


async def test_a_refused_connection_changed_nothing() -> None:
    configuration = client.Configuration()
    # Port 1 is never listened on here.
    configuration.host = "http://127.0.0.1:1"
    async with client.ApiClient(configuration) as api, aclosing(Client(api)) as made:
        assert (await failed(made)).effect is Effect.NOTHING_HAPPENED


@pytest.mark.parametrize("text", [b'{"metadata": {"na', b"", b"[]", b"garbage", b"[" * 50_000 + b"]" * 50_000])
async def test_an_answer_that_can_not_be_read_leaves_it_open(
    server: kmock.RawHandler, kubernetes: Client, text: bytes
) -> None:
    server[f"post {PATH}"] << 200 << text
    assert (await failed(kubernetes)).effect is Effect.UNANSWERED


async def test_an_object_that_is_nested_deeply_is_answered_as_any_other(
    server: kmock.RawHandler, kubernetes: Client
) -> None:
    # The API server takes ten thousand levels where a CRD preserves unknown fields.
    deep = b'{"metadata": {"name": "a"}, "deep": ' + b"[" * 9_000 + b"]" * 9_000 + b', "after": 1}'
    server[f"post {PATH}"] << 201 << deep
    made = await kubernetes.create("TrainJob", "team-a", {"metadata": {"name": "a"}}, timeout=5)
    assert (made["metadata"], made["after"]) == ({"name": "a"}, 1)


async def test_a_connection_that_is_closed_after_the_request_leaves_it_open() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    configuration = client.Configuration()
    configuration.host = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, client.ApiClient(configuration) as api, aclosing(Client(api)) as made:
        assert (await failed(made)).effect is Effect.UNANSWERED


async def test_an_object_that_does_not_exist_is_none(server: kmock.RawHandler, kubernetes: Client) -> None:
    server[f"get {PATH}/job"] << 404 << status(404, "NotFound", 'trainjobs "job" not found')
    assert await kubernetes.get("TrainJob", "team-a", "job", timeout=5) is None


async def test_a_kind_that_is_not_served_is_no_absence(server: kmock.RawHandler, kubernetes: Client) -> None:
    server[f"get {PATH}/job"] << 404 << b"404 page not found\n"
    with pytest.raises(ApiError, match="is its CRD installed"):
        await kubernetes.get("TrainJob", "team-a", "job", timeout=5)


async def test_names_can_not_reach_beyond_their_path(server: kmock.RawHandler, kubernetes: Client) -> None:
    server.fallback << 404 << status(404, "NotFound", "no")
    await kubernetes.get("TrainJob", "team-a", "../../other/trainjobs/job?x=1", timeout=5)
    (request,) = list(server)
    assert request.url.raw_path == f"{PATH}/..%2F..%2Fother%2Ftrainjobs%2Fjob%3Fx=1"


async def test_nulls_empty_lists_and_unicode_are_sent_as_they_are(server: kmock.RawHandler, kubernetes: Client) -> None:
    body = {"metadata": {"name": "job"}, "spec": {"none": None, "empty": [], "zero": 0, "text": "é\u2028😀"}}
    server[f"post {PATH}"] << body
    assert await kubernetes.create("TrainJob", "team-a", body, timeout=5) == body
    (request,) = list(server)
    assert json.loads(request.body) == body
    assert request.headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize("send", ["create", "patch", "apply_status"])
async def test_a_body_is_as_long_as_its_utf8(server: kmock.RawHandler, kubernetes: Client, send: str) -> None:
    """As ASCII escapes, 1.1 MB of text that kubectl could store are more than the API server takes."""
    body = {"metadata": {"name": "job"}, "spec": {"text": "é\u2028😀\\u00e9"}}
    server.fallback << body
    if send == "create":
        await kubernetes.create("TrainJob", "team-a", body, timeout=5)
    elif send == "patch":
        await kubernetes.patch("TrainJob", "team-a", "job", body, timeout=5)
    else:
        await kubernetes.apply_status("TrainJob", "team-a", "job", body, timeout=5, field_manager="us")
    (request,) = list(server)
    assert request.body == json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


async def test_a_delete_carries_its_preconditions(server: kmock.RawHandler, kubernetes: Client) -> None:
    server[f"delete {PATH}/job"] << {"kind": "Status"}
    await kubernetes.delete("TrainJob", "team-a", "job", timeout=5, uid="u", resource_version="7")
    (request,) = list(server)
    sent = json.loads(request.body)
    assert sent["preconditions"] == {"uid": "u", "resourceVersion": "7"}
    assert sent["propagationPolicy"] == "Background"


async def test_a_list_sends_its_selectors(server: kmock.RawHandler, kubernetes: Client) -> None:
    server["get /api/v1/namespaces/team-a/pods"] << {"metadata": {"resourceVersion": "1"}, "items": [{"kind": "Pod"}]}
    found = await kubernetes.select(
        "Pod", "team-a", timeout=5, read=dict, most=1000, label_selector="a=b", field_selector="status.phase=Failed"
    )
    assert found == ({"kind": "Pod"},)
    (request,) = list(server)
    assert dict(request.url.query) == {
        "limit": "500",
        "labelSelector": "a=b",
        "fieldSelector": "status.phase=Failed",
    }


def pods(first: int, count: int, token: str = "") -> Any:
    """Return a page of pods that are numbers."""
    meta = {"resourceVersion": "1", "continue": token}
    return {"metadata": meta, "items": [{"number": first + place} for place in range(count)]}


@pytest.mark.parametrize(("most", "want"), [(10, 6), (4, 4), (3, 4)])
async def test_a_list_is_read_in_pages_up_to_a_bound(
    server: kmock.RawHandler, kubernetes: Client, most: int, want: int
) -> None:
    # A page holds two, whatever was asked for; the list goes on as long as there is a token, and no further than wanted.
    pages = {None: pods(0, 2, "1"), "1": pods(2, 2, "2"), "2": pods(4, 2)}
    server["get /api/v1/namespaces/team-a/pods"] << (lambda request: pages[dict(request.url.query).get("continue")])
    found = await kubernetes.select("Pod", "team-a", timeout=5, read=lambda pod: pod["number"], most=most)
    assert found == tuple(range(want))


async def test_a_page_that_is_too_large_is_asked_for_in_parts(
    server: kmock.RawHandler, kubernetes: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube, "LARGEST_PAGE_BYTES", 200)
    server["get /api/v1/namespaces/team-a/pods"] << pods(0, 100)
    with pytest.raises(PageTooLargeError):
        await kubernetes.select("Pod", "team-a", timeout=5, read=dict, most=1000)
    assert [dict(request.url.query)["limit"] for request in list(server)] == ["500", "62", "7", "1"]


async def test_a_list_that_is_cut_off_is_a_failure(server: kmock.RawHandler, kubernetes: Client) -> None:
    server["get /api/v1/namespaces/team-a/pods"] << b'{"items": ['
    with pytest.raises(ApiError) as caught:
        await kubernetes.select("Pod", "team-a", timeout=5, read=dict, most=1000)
    assert caught.value.effect is Effect.UNANSWERED


@pytest.mark.parametrize(
    "text", ["{}", "a: [", "[]", "clusters: 5\ncurrent-context: x", "current-context: x\ncontexts: []"]
)
async def test_without_a_cluster_the_error_says_so(tmp_path: Any, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(NoClusterError, match="can't be used"):
        async with connected(str(file)):
            pass


@pytest.mark.parametrize(
    ("kubeconfig", "environment", "want"),
    [
        (None, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, True),
        ("file", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, False),
        (None, {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBECONFIG": "file"}, False),
        (None, {}, False),
    ],
)
def test_a_named_kubeconfig_wins_over_the_pods_account(
    monkeypatch: pytest.MonkeyPatch, kubeconfig: str | None, environment: dict[str, str], want: bool
) -> None:
    for name in ("KUBERNETES_SERVICE_HOST", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert in_cluster(kubeconfig) is want


async def test_a_session_for_kopf_reads_the_credentials_anew_for_each_request(
    server: kmock.RawHandler, kubernetes: Client
) -> None:
    server["get /any"] << b"{}"
    async with kubernetes.session() as session:
        for token in ("old", "new"):
            kubernetes.api.configuration.api_key["BearerToken"] = f"Bearer {token}"
            async with session.get(kubernetes.server + "/any"):
                pass
    assert [request.headers["Authorization"] for request in server] == ["Bearer old", "Bearer new"]


async def test_a_session_that_is_closed_in_the_middle_fails_as_kopf_expects(
    server: kmock.RawHandler, kubernetes: Client
) -> None:
    # kopf closes it when another request was refused, and logs in anew; it takes any other error for the end.
    session = kubernetes.session()
    configuration = kubernetes.api.configuration
    configuration.refresh_api_key_hook = lambda _: session.close()
    server["get /any"] << b"{}"
    with pytest.raises(RuntimeError, match="Session is closed"):
        await session.get(kubernetes.server + "/any")


async def test_credentials_that_a_watch_shows_to_be_refused_count(server: kmock.RawHandler, kubernetes: Client) -> None:
    server[f"get {PATH}"] << 401
    with pytest.raises(ApiError):
        async with kubernetes.watch(
            Kind.TRAIN_JOB, "team-a", timeout=5, resource_version="1", seconds=5, grace=5, silent_for=5
        ):
            pass
    assert not kubernetes.authorized


@pytest.fixture
async def far_away(server: kmock.RawHandler, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client of a server that only the environment's proxy reaches."""
    monkeypatch.setenv("http_proxy", str(server.url))
    server.fallback << BODY
    configuration = client.Configuration()
    configuration.host = "http://cluster.invalid"
    return Client(client.ApiClient(configuration))


async def test_requests_go_through_the_proxy_that_the_environment_names(far_away: Client) -> None:
    async with far_away.api, aclosing(far_away):
        assert await far_away.get("TrainJob", "team-a", "job", timeout=5) == BODY


async def test_requests_go_around_the_proxy_where_the_environment_says_so(
    far_away: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "cluster.invalid")
    async with far_away.api, aclosing(Client(far_away.api)) as direct:
        assert (await failed(direct)).effect is Effect.NOTHING_HAPPENED
