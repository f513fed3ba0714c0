"""Arguments mean the same as to kubectl; where one means nothing, the message says which would be right."""

import json
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import click
import msgspec
import pytest
import yaml
from click.testing import CliRunner

from controlplane import Access, Cluster
from pilotage.cli import options
from pilotage.cli.connection import ClusterChoice, run_briefly
from pilotage.cli.errors import plain_errors
from pilotage.kube import Client, Discovery, Forbidden, Json, Object, load_config
from pilotage.teardown.planning.arguments import TargetError, parse, parse_selector
from pilotage.teardown.planning.targets import Targets, resolve, resolve_in
from pilotage.teardown.session import Session
from pilotage.teardown.session.request import TeardownRequest
from pilotage.teardown.session.targets import names_in
from pilotage.teardown.snapshot.dump import load_dump, manifests
from pilotage.teardown.snapshot.world import Name, World
from tests.support.kinds import CONFIG_MAPS, DEPLOYMENTS, SERVICES, config_map, definition, deployment, widgets


@pytest.fixture
async def client(cluster: Access) -> AsyncIterator[Client]:
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as connected:
        yield connected


def shown(targets: Targets) -> list[str]:
    return sorted(f"{item.meta.namespace}:{item.resource.kind}/{item.meta.name}" for item in targets.found)


# Words

WORDS = {
    ("pod/a", "pod/b"): [("pod", "a"), ("pod", "b")],
    ("pod", "a", "b"): [("pod", "a"), ("pod", "b")],
    ("deploy,svc", "web"): [("deploy", "web"), ("svc", "web")],
    ("deployments.v1.apps/web",): [("deployments.v1.apps", "web")],
    (): [],
}


@pytest.mark.parametrize("words", WORDS)
def test_words_are_taken_apart_as_kubectl_does(words: tuple[str, ...]) -> None:
    assert parse(words).named == WORDS[words]


def test_kinds_without_names_are_for_a_selector() -> None:
    assert parse(["deploy,svc"]) == ([], ["deploy", "svc"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pod/a", "b"], "'b' has no kind, while the other words have one: write KIND/NAME, such as pod/b."),
        (["pod/"], "'pod/' is not KIND/NAME: write it as in deployment/web."),
        (["/a"], "'/a' is not KIND/NAME: write it as in deployment/web."),
        (["pod/a/b"], "'pod/a/b' is not KIND/NAME: write it as in deployment/web."),
    ],
)
def test_words_of_neither_form_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(TargetError) as raised:
        parse(words)
    assert str(raised.value) == message


# Live


@pytest.fixture
async def web(client: Client, namespace: str) -> tuple[Object, Object, Object]:
    """A ConfigMap, a Deployment and a Service called web; the last two are labelled."""
    labelled = deployment("web", replicas=0)
    labelled["metadata"]["labels"] = {"app": "web"}
    service = {"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"ports": [{"port": 80}]}}
    return (
        await client.create(CONFIG_MAPS, config_map("web", {"a": "b"}), namespace=namespace),
        await client.create(DEPLOYMENTS, labelled, namespace=namespace),
        await client.create(SERVICES, service, namespace=namespace),
    )


@pytest.mark.parametrize(
    "words",
    [
        "deployment/web",
        "deploy/web",
        "Deployments/web",
        "deployments.apps/web",
        "deployment.v1.apps/web",
        "deploy web",
        "deploy web web",
        "deploy/web deployments.apps/web",
    ],
)
async def test_one_object_is_meant_however_it_is_called(
    client: Client, namespace: str, web: tuple[Object, Object, Object], words: str
) -> None:
    targets = await resolve(client, Discovery(client), words.split(), namespace=namespace)
    assert [item.uid for item in targets.found] == [web[1].meta.uid]
    assert targets.found[0].full
    assert targets.found[0].read()["spec"]["replicas"] == 0
    assert targets.absent == []


@pytest.mark.usefixtures("web")
async def test_several_objects_of_several_kinds(client: Client, namespace: str) -> None:
    discovery = Discovery(client)
    both = [f"{namespace}:Deployment/web", f"{namespace}:Service/web"]
    assert shown(await resolve(client, discovery, ["deploy,svc", "web"], namespace=namespace)) == both
    named = await resolve(client, discovery, ["svc/web", "deploy/web", f"ns/{namespace}"], namespace=namespace)
    assert shown(named) == [f":Namespace/{namespace}", *both]  # -n does not matter to a kind without a namespace


@pytest.mark.usefixtures("web")
async def test_the_namespace_is_the_one_of_the_context_unless_given(client: Client, namespace: str) -> None:
    client.namespace = namespace
    assert shown(await resolve(client, Discovery(client), ["cm/web"])) == [f"{namespace}:ConfigMap/web"]
    with pytest.raises(
        TargetError,
        match=r"^There is no configmap/web -n default\. There is kube-root-ca\.crt\. Look in another",
    ):
        await resolve(client, Discovery(client), ["cm/web"], namespace="default")


@pytest.mark.usefixtures("web")
async def test_what_is_wrong_is_said_with_what_would_be_right(client: Client, namespace: str) -> None:
    async def refusal(*words: str) -> str:
        with pytest.raises(TargetError) as raised:
            await resolve(client, Discovery(client), words, namespace=namespace)
        return str(raised.value)

    assert (await refusal("deploymnt/web")).startswith("The server has no kind 'deploymnt'. Did you mean deployment")
    assert "kubectl api-resources" in await refusal("zzzzzz/web") or "could not be asked" in await refusal("zzzzzz/web")
    assert await refusal("cm/wbe") == f"There is no configmap/wbe -n {namespace}. There is web."
    with pytest.raises(TargetError, match=r"^There is no configmap/a -n typo: there is no namespace typo\."):
        await resolve(client, Discovery(client), ["cm/a"], namespace="typo")
    assert await refusal("cm", "wbe", "webb") == (
        f"There is no configmap/wbe -n {namespace}. There is web. "
        f"There is no configmap/webb -n {namespace}. There is web."
    )
    assert await refusal("deploy,svc") == "Which deploy, svc? Add a name (deploy/NAME), or a selector (-l)."
    assert (await refusal("cm/..")).startswith("configmap/..: '..' cannot be the name")


def test_a_selector_that_is_none_is_refused() -> None:
    with pytest.raises(TargetError, match=r"^-l a=b=c: "):
        parse_selector("a=b=c")


async def test_what_is_gone_can_be_fine(client: Client, namespace: str) -> None:
    targets = await resolve(client, Discovery(client), ["cm/x"], namespace=namespace, absent_ok=True)
    assert targets.absent == [Name("", "ConfigMap", namespace, "x")]
    assert targets.found == []


async def test_what_may_not_be_read_is_no_answer(own_cluster: Cluster, namespace: str) -> None:
    user = f"nobody-{secrets.token_hex(4)}"
    async with Client.connect(load_config(kubeconfig=str(own_cluster.user(user)))) as nobody:
        with pytest.raises(Forbidden):
            await resolve(nobody, Discovery(nobody), ["cm/a"], namespace=namespace)


async def test_manifests_name_what_may_be_there_and_what_cannot_be(
    client: Client, namespace: str, tmp_path: Path
) -> None:
    kind = widgets()
    documents: list[Json] = [
        {"apiVersion": "apps/v1beta9", "kind": "Deployment", "metadata": {"name": "web"}},  # another version: the same
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": namespace}},
        {"apiVersion": f"{kind.group}/v1", "kind": "Widget", "metadata": {"name": "w"}},
    ]
    file = tmp_path / "bundle.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    session = Session(client, Discovery(client), "")
    request = TeardownRequest(words=("cm/web",), namespace=namespace, files=(file,))
    names, absent = await names_in(session, request)
    assert names == [Name("", "ConfigMap", namespace, "web"), Name("apps", "Deployment", namespace, "web")]
    assert [str(name) for name in absent] == ["widget/w"]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}}))
    with pytest.raises(TargetError, match="generateName"):
        await names_in(session, request)


# In a dump


def obj(api_version: str, kind: str, name: str, namespace: str = "", **labels: str) -> Json:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": labels} | place}


@pytest.fixture
def dump(tmp_path: Path) -> World:
    kind = msgspec.structs.replace(widgets(), group="example.com", plural="widgetry")
    crd = definition(kind, "wd")
    file = tmp_path / "dump.yaml"
    file.write_text(
        yaml.safe_dump_all(
            [
                obj("v1", "Pod", "a", "shop", app="web"),
                obj("v1", "Pod", "a", "bank"),
                obj("v1", "Pod", "b", "shop"),
                obj("serving.knative.dev/v1", "Service", "web", "shop"),
                obj("v1", "Service", "web", "shop", app="web"),
                obj("v1", "Namespace", "shop"),
                obj("example.com/v1", "Widget", "w", "shop", app="web"),
                {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"} | crd,
            ]
        )
    )
    return load_dump([file])


IN_DUMP = {
    "po/b": ["shop:Pod/b"],
    "PODS b": ["shop:Pod/b"],
    "pod.v1./b": ["shop:Pod/b"],
    "ns/shop": [":Namespace/shop"],
    "svc/web": ["shop:Service/web"],
    "services.serving.knative.dev/web": ["shop:Service/web"],
    "wd/w": ["shop:Widget/w"],
    "widgetry.example.com/w": ["shop:Widget/w"],
    "widget.v1.example.com/w": ["shop:Widget/w"],
    "crd/widgetry.example.com": [":CustomResourceDefinition/widgetry.example.com"],
}


@pytest.mark.parametrize("words", IN_DUMP)
def test_words_mean_objects_of_a_dump(words: str, dump: World) -> None:
    assert shown(resolve_in(dump, words.split())) == IN_DUMP[words]


def test_kinds_of_kubernetes_itself_come_first(dump: World) -> None:
    assert [item.resource.group for item in resolve_in(dump, ["service/web"]).found] == [""]


def test_a_namespace_tells_two_objects_of_a_dump_apart(dump: World) -> None:
    assert shown(resolve_in(dump, ["pod/a"], namespace="bank")) == ["bank:Pod/a"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("pod/a", "There are several: pod/a -n shop or pod/a -n bank. Say which with -n."),
        ("widgt/w", "The dump has no kind 'widgt'. Did you mean widget"),
        ("zzzzz/w", "The dump has no kind 'zzzzz'. It has "),
        ("svc/wbe", "There is no service/wbe. There is web."),
        ("svc", "Which svc? Add a name (svc/NAME), or a selector (-l)."),
    ],
)
def test_what_a_dump_does_not_have(words: str, message: str, dump: World) -> None:
    with pytest.raises(TargetError) as raised:
        resolve_in(dump, words.split())
    assert str(raised.value).startswith(message)


# On the command line


@click.command()
@click.argument("words", nargs=-1)
@options.cluster_options
@options.namespace_options
@options.output_option("")
@options.files_option("Read these.")
@plain_errors
def show(
    words: tuple[str, ...],
    cluster: ClusterChoice,
    namespace: str,
    all_namespaces: bool,
    output: str,
    files: tuple[Path, ...],
) -> None:
    """Targets that the options result in."""

    async def ask() -> list[str]:
        async with cluster.session() as (client, discovery, _):
            manifests(files)
            return shown(await resolve(client, discovery, words, namespace=namespace))

    click.echo(f"{run_briefly(ask())} {output} {all_namespaces}")


def test_options_lead_to_a_cluster_and_errors_to_a_sentence(cluster: Access, tmp_path: Path) -> None:
    run = CliRunner().invoke
    there = ["--kubeconfig", str(cluster.kubeconfig)]
    done = run(show, ["ns/default", *there, "-o", "json", "-n", "kube-system"])
    assert (done.exit_code, done.output) == (0, "[':Namespace/default'] json False\n")
    wrong = run(show, ["nss/default", *there])
    assert wrong.exit_code == 2
    assert wrong.output.startswith("Error: The server has no kind 'nss'. Did you mean ns")
    unread = run(show, ["-f", str(tmp_path / "nowhere.yaml"), *there])
    assert unread.exit_code == 2
    assert "nowhere.yaml: it cannot be read (No such file or directory). Correct the path" in unread.output
    both = run(show, ["-A", "-n", "x", *there])
    assert both.exit_code == 2
    assert "-n and -A exclude each other." in both.output
    no_config = run(show, ["ns/default", "--kubeconfig", str(tmp_path / "none")])
    assert no_config.exit_code == 2
