"""Commands that are printed to be pasted: they act on the cluster that was asked, also where another one is current."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from pilotage.cli.connection import ClusterChoice
from pilotage.kube import Client, Propagation, Resource
from pilotage.teardown.diagnosis.leaks import model as leaks_model
from tests.cli.running import Ran, ask, run
from tests.support import kinds

FINALIZER = "acme.example.com/cleanup"
SUGGESTED = re.compile(r"\b(?:pilotage|kubectl) (?!install)[a-z]+ [^`]*")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")


@pytest.fixture(scope="module")
def config(serving_server: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig with the server as context `real one`; the current context is a cluster that is not there."""
    body = yaml.safe_load(serving_server.read_text())
    (context,) = body["contexts"]
    gone = {"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}}
    body |= {
        "contexts": [context | {"name": "real one"}, {"name": "other", "context": {"cluster": "gone"}}],
        "clusters": [*body["clusters"], gone],
        "current-context": "other",
    }
    path = tmp_path_factory.mktemp("config") / "kube config"
    path.write_text(yaml.safe_dump(body))
    ask(serving_server, _fill)
    return path


async def _fill(client: Client) -> None:
    await client.create(kinds.NAMESPACES, {"metadata": {"name": "suggest"}})
    for name, *more in (("stuck",), ("again", "acme.example.com/other")):
        body = kinds.config_map(name, finalizers=[FINALIZER, *more])
        made = await client.create(kinds.CONFIG_MAPS, body, namespace="suggest")
    await client.delete(kinds.CONFIG_MAPS, made.key, uid=made.meta.uid, propagation=Propagation.BACKGROUND)
    backend = {"service": {"name": "lost", "port": {"number": 80}}}
    await client.create(
        INGRESSES, {"metadata": {"name": "web"}, "spec": {"defaultBackend": backend}}, namespace="suggest"
    )


def there(config: Path, *args: str | Path) -> Ran:
    return run(*args, "--context", "real one", kubeconfig=config)


def suggestions(ran: Ran) -> list[str]:
    return [found[0] for line in (ran.out + ran.err).splitlines() for found in SUGGESTED.finditer(line)]


def of_delete(config: Path, folder: Path) -> Ran:
    return there(config, "delete", "cm/stuck", "-n", "suggest", "-y", "--timeout", "1", "--receipt", folder / "r.json")


def of_verify(config: Path, folder: Path) -> Ran:
    of_delete(config, folder)
    return there(config, "receipt", "verify", folder / "r.json")


DEPLOY = ("deploy", "a", "--model", "hf://a/b/c.gguf", "-n")
FIX = ("-n", "suggest", "--fix", "strip-finalizer", "--finalizer", FINALIZER, "--yes")
COMMANDS: dict[str, Callable[[Path, Path], Ran]] = {
    "delete": of_delete,
    "deploy": lambda config, _: there(config, *DEPLOY, "suggest", "--timeout", "0.1"),
    "deploy again": lambda config, _: there(config, *DEPLOY, "suggest"),
    "deploy nowhere": lambda config, _: there(config, *DEPLOY, "nowhere"),
    "plan": lambda config, _: there(config, "plan", "ns/suggest"),
    "leaks": lambda config, _: there(config, "leaks", "-n", "suggest"),
    "logs": lambda config, _: there(config, "logs", "a", "-n", "suggest"),
    "receipt verify": of_verify,
    "rollback": lambda config, _: there(config, "rollback", "a", "-n", "suggest"),
    "wait": lambda config, _: there(config, "wait", "cm/stuck", "-n", "suggest", "--timeout", "0.1"),
    "why": lambda config, _: there(config, "why", "cm/stuck", "-n", "suggest"),
    "why --fix": lambda config, _: there(config, "why", "cm/again", *FIX),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_printed_command_names_the_cluster(
    name: str, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(leaks_model, "YOUNG_SECONDS", 0)
    if name not in ("delete", "receipt verify", "deploy", "deploy nowhere"):
        of_delete(config, tmp_path)  # it is being deleted then
        COMMANDS["deploy"](config, tmp_path)
    ran = COMMANDS[name](config, tmp_path)
    found = suggestions(ran)
    assert found, ran
    options = f"--kubeconfig {shlex.quote(str(config))} --context 'real one'"
    assert [each for each in found if options not in each] == []


def test_a_printed_command_works_when_it_is_pasted(config: Path, tmp_path: Path):
    of_delete(config, tmp_path)
    told = there(config, "why", "cm/stuck", "-n", "suggest")
    (strip,) = [each for each in suggestions(told) if "strip-finalizer" in each]
    program, *words = shlex.split(strip)
    ran = run(*words, "--yes")
    assert (program, ran.code) == ("pilotage", 0), ran
    assert "configmap/stuck -n suggest is gone" in ran.out


NAMED = "--kubeconfig f --context c"


@pytest.mark.parametrize(
    ("command", "completed"),
    [
        ("kubectl get x", f"kubectl get x {NAMED}"),
        ("kubectl create a && kubectl bind a", f"kubectl create a {NAMED} && kubectl bind a {NAMED}"),
        ("kubectl get 'a && kubectl b'", f"kubectl get 'a && kubectl b' {NAMED}"),
        ("pilotage install --print | kubectl apply -f -", f"pilotage install --print | kubectl apply -f - {NAMED}"),
        ("helm uninstall x", "helm uninstall x --kubeconfig f --kube-context c"),
        ("flux suspend x", f"flux suspend x {NAMED}"),
        ("git rm …", "git rm …"),
        ("", ""),
        ("pilotage operator", "pilotage operator --kubeconfig f --context c"),
        ("pilotage up", "pilotage up"),
        ("pilotage agent --name gpu-1", "pilotage agent --name gpu-1"),
    ],
)
def test_each_program_gets_its_own_options(command: str, completed: str):
    assert ClusterChoice("f", "c").complete(command) == completed
    assert ClusterChoice(None, None).complete(command) == command
