"""The control plane for tests: the fixtures `cluster`, `own_cluster` and `namespace`, and when it is built and started.

Tests that use a cluster run last. Where binaries are missing, they are built in the background from the start of the
session; the session waits for them between the last test without a cluster and the first one with it, outside the time
that any test has. `PILOTAGE_TEST_KUBECONFIG` names a cluster of the user's own to use instead.
"""

import gc
import os
import re
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from controlplane import Access, Cluster, NoControlPlane, RemoteCluster, assets
from controlplane.background import BackgroundBuild
from controlplane.build import NoGo, check_go

# gRPC would stop its threads at each fork, and sometimes ends the new process while it does: no test needs that.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

pytest_plugins = ("tests.support.tools", "tests.support.edge", "tests.support.kserve")

REMOTE = os.environ.get("PILOTAGE_TEST_KUBECONFIG")
UNDER_CI = os.environ.get("CI", "").lower() in {"1", "true"}


@pytest.fixture(autouse=True, scope="session")
def state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folder for the receipts of commands, also of those that are processes of their own: not the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("state")
        patch.setenv("XDG_STATE_HOME", str(folder))
        yield folder


class ControlPlane:
    """State of the control plane in this session; one per session, in the config's stash."""

    build: BackgroundBuild | None = None
    cluster: Cluster | None = None
    skip: str | None = None
    """Why tests that need a cluster are skipped."""
    failure: str | None = None
    """Why they fail."""

    def prepare(self) -> None:
        """Begin the build, if one is needed and possible."""
        try:
            if lacking := assets.missing(os.environ):
                check_go(lacking, os.environ)
                self.build = BackgroundBuild()
        except NoGo as error:
            if UNDER_CI:
                self.failure = str(error)
            else:
                self.skip = str(error)
        except NoControlPlane as error:
            self.failure = str(error)

    def wait(self, terminal: pytest.TerminalReporter | None) -> None:
        """Wait for the build, if there is one, and show its progress."""

        def say(line: str) -> None:
            if terminal:
                terminal.ensure_newline()
                terminal.write_line(line)

        if self.build:
            try:
                self.build.wait(say)
            except NoControlPlane as error:
                self.failure = str(error)
            self.close()

    def close(self) -> None:
        """End the build."""
        if self.build:
            self.build.close()
            self.build = None


CONTROL_PLANE = pytest.StashKey[ControlPlane]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[CONTROL_PLANE] = ControlPlane()
    if config.pluginmanager.hasplugin("hypothesispytest"):
        from hypothesis import HealthCheck, settings

        # On a busy machine everything is slow: that alone is no failure.
        settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.load_profile("untimed")


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[CONTROL_PLANE].close()


@pytest.hookimpl(tryfirst=True)  # before `-m cluster` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker("cluster")
    items.sort(key=needs_cluster)


def pytest_collection_finish(session: pytest.Session) -> None:
    # Imported modules and collected tests stay to the end: scanning them for garbage takes a tenth of the time.
    gc.collect()
    gc.freeze()
    if any(map(needs_cluster, session.items)) and not session.config.option.collectonly and not REMOTE:
        session.config.stash[CONTROL_PLANE].prepare()


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outside of pytest-timeout's
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if needs_cluster(item):
        item.config.stash[CONTROL_PLANE].wait(item.config.pluginmanager.get_plugin("terminalreporter"))
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    control_plane = item.config.stash[CONTROL_PLANE]
    if needs_cluster(item) and report.failed and control_plane.cluster:
        report.sections.append(("logs of the control plane", str(control_plane.cluster.keep_logs())))
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)  # its end is after everything that pytest prints
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    yield
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal and (reports := terminal.stats.get("skipped")):
        reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
        terminal.write_line("skipped " + "; ".join(f"{count}: {reason}" for reason, count in reasons.most_common()))


def needs_cluster(item: pytest.Item) -> bool:
    return item.get_closest_marker("cluster") is not None


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Access]:
    """A real cluster, one for the whole session. It may be the user's own: stay within the fixture `namespace`."""
    if REMOTE:
        yield RemoteCluster(Path(REMOTE))
        return
    control_plane = pytestconfig.stash[CONTROL_PLANE]
    if control_plane.skip:
        pytest.skip(control_plane.skip)
    if control_plane.failure:
        pytest.fail(control_plane.failure, pytrace=False)
    with Cluster(cores=1) as running:  # other tests have use for the others
        control_plane.cluster = running
        yield running
        control_plane.cluster = None


@pytest.fixture
def own_cluster(cluster: Access) -> Iterator[Cluster]:
    """The same, for tests that need it to be ours: to break it, read its audit log, make users. Repaired after."""
    if not isinstance(cluster, Cluster):
        pytest.skip("needs a control plane of our own, and PILOTAGE_TEST_KUBECONFIG names one of yours")
    yield cluster
    cluster.repair()


@pytest.fixture
def namespace(cluster: Access, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace for this test alone. Those that create pods in it use `namespace_for_pods`."""
    prefix = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    with cluster.namespace(prefix, for_pods=False) as name:
        yield name
        if isinstance(cluster, Cluster):
            cluster.repair()  # to be able to delete it


@pytest.fixture
def namespace_for_pods(cluster: Access, namespace: str) -> str:
    """The same, once pods can be created in it: after a restart of the API server that can take most of a minute."""
    cluster.wait_for_service_account(namespace)
    return namespace
