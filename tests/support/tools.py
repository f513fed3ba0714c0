"""The programs of others that fixtures start. `make field` builds them; under CI, the session does.

It takes nearly as long as to build the control plane and run all other tests, so it is not asked of everybody who wants
to run the tests once. Tests that use such a fixture run last of all. Under CI the build begins with the session, after
the control plane's; the session waits for it before the first such test, outside the time that any test has.
"""

from collections.abc import Generator, Sequence

import pytest

import field
from controlplane import NoControlPlane
from controlplane.background import BackgroundBuild
from tests.conftest import UNDER_CI

PROGRAMS = {"edge": "contour", "kserve": "kserve", "helm": "helm", "registry_program": "registry"}
"""Tools by fixture."""


class Tools:
    """State of the tools in this session; one per session, in the config's stash."""

    build: BackgroundBuild | None = None
    missing: Sequence[str] = ()
    why: str = ""
    """Reason why they are missing."""

    def prepare(self, names: Sequence[str]) -> None:
        """Those that are not there are missing; under CI their build begins."""
        try:
            lacking = [name for name in names if field.built(name) is None]
        except field.FieldError as error:
            self.missing, self.why = names, str(error)
            return
        if lacking and UNDER_CI:
            self.build = BackgroundBuild(" and ".join(lacking), ["field", "--last", *lacking])
        else:
            self.missing, self.why = lacking, f"need {', '.join(lacking)}: make field"

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
                self.missing, self.why = [*PROGRAMS.values()], str(error)
            self.close()

    def close(self) -> None:
        """End the build."""
        if self.build:
            self.build.close()
            self.build = None


TOOLS = pytest.StashKey[Tools]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TOOLS] = Tools()


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[TOOLS].close()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: bool(needed(item)))


def pytest_collection_finish(session: pytest.Session) -> None:
    names = sorted({name for item in session.items for name in needed(item)})
    if names and not session.config.option.collectonly:
        session.config.stash[TOOLS].prepare(names)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outside of pytest-timeout's
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if needed(item):
        item.config.stash[TOOLS].wait(item.config.pluginmanager.get_plugin("terminalreporter"))
    return (yield)


@pytest.hookimpl(tryfirst=True)  # before any fixture
def pytest_runtest_setup(item: pytest.Item) -> None:
    tools = item.config.stash[TOOLS]
    if needed(item) & {*tools.missing}:
        unavailable(tools.why)


def needed(item: pytest.Item) -> set[str]:
    """The programs that a test needs."""
    return {PROGRAMS[each] for each in getattr(item, "fixturenames", ()) if each in PROGRAMS}


@pytest.fixture(scope="session")
def registry_program() -> None:
    """The program of a container registry is there."""


def unavailable(why: str) -> None:
    """Skip the test, or fail it under CI."""
    if UNDER_CI:
        pytest.fail(why, pytrace=False)
    pytest.skip(why)
