"""The cluster that a command uses: that of the kubeconfig; without one, that of a running `pilotage up`."""

import os
import subprocess
import sys

import pytest

from pilotage.cli.connection import ClusterChoice
from pilotage.processes import identity
from pilotage.up.layout import Layout, UpState
from tests.cli.running import NO_SERVER, run_on_terminal
from tests.harbor.server.test_run import harbor


def pilotage(home, *words, **environment):
    """Run a command of a user whose home this is, and who has set nothing else."""
    env = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    command = [sys.executable, "-m", "pilotage", *words]
    env |= {"HOME": str(home), **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with a machine that is up in the default folder, by its files: an API server, and this process."""
    home = tmp_path_factory.mktemp("home")
    layout = Layout(home / ".local" / "share" / "pilotage")
    layout.make()
    own = identity.find(os.getpid())
    assert own is not None
    layout.write_state(UpState(own.id, {}, {}, "http://127.0.0.1:8080", ready=True))
    with harbor(layout.harbor, "--memory") as (_, url, _):
        yield home, layout, url


def test_without_a_kubeconfig_a_running_machine_is_used(home):
    place, _, url = home
    answer = pilotage(place, "version")
    assert (answer.returncode, f"server: {url}\n" in answer.stdout) == (0, True)
    assert answer.stderr == "", "where it changes nothing, that is no news"


@pytest.mark.parametrize(("words", "told"), [(("--yes",), 1), (("--dry-run",), 0)])
def test_on_a_terminal_the_machine_is_named_once_by_a_command_that_may_change_something(home, words, told):
    place, layout, _ = home
    unset = dict.fromkeys(("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "PILOTAGE_DATA", "XDG_DATA_HOME"), "")
    ran = run_on_terminal("delete", "cm/none", *words, HOME=str(place), **unset)
    assert ran.out.count(f"No kubeconfig is set up: using `pilotage up` in {layout.folder}.\n") == told
    assert "configmap/none -n default is not there" in ran.out


def test_printed_commands_of_other_programs_name_the_machine_that_was_found(home):
    place, layout, _ = home
    answer = pilotage(place, "list")
    assert f"kubectl apply --server-side -f - --kubeconfig {layout.kubeconfig}\n" in answer.stderr
    told = ClusterChoice(None, None)
    told.machine = layout
    assert told.complete("kubectl get pods") == f"kubectl get pods --kubeconfig {layout.kubeconfig}"
    assert told.complete("pilotage status a") == "pilotage status a", "it finds the machine by itself"


def test_a_kubeconfig_wins_and_its_errors_name_the_machine_that_is_up(home, tmp_path):
    _, layout, _ = home
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(NO_SERVER)
    how = f"To use it: export KUBECONFIG={layout.kubeconfig}\n"
    answer = pilotage(tmp_path, "version", PILOTAGE_DATA=str(layout.folder))
    assert answer.returncode == 3
    assert "127.0.0.1:1" in answer.stderr
    assert answer.stderr.endswith(how)
    answer = pilotage(tmp_path, "version", "--context", "none", PILOTAGE_DATA=str(layout.folder))
    assert answer.returncode == 2
    assert answer.stderr.endswith(how)
    assert "export KUBECONFIG" not in pilotage(tmp_path, "version").stderr, "nothing is up in this one's folder"


def test_the_machine_itself_is_not_recommended_to_who_uses_it(home):
    place, layout, _ = home
    answer = pilotage(place, "list", KUBECONFIG=str(layout.kubeconfig))
    assert answer.returncode == 3
    assert "Pilotage is not installed in this cluster" in answer.stderr
    assert "export KUBECONFIG" not in answer.stderr


def test_a_folder_that_others_can_write_to_is_not_believed(home):
    place, layout, _ = home
    layout.folder.chmod(0o777)
    try:
        answer = pilotage(place, "version")
    finally:
        layout.folder.chmod(0o700)
    assert answer.returncode == 2
    assert "no cluster is configured" in answer.stderr
