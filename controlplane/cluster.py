"""One control plane of our own: started, watched, broken on purpose, and taken away without a trace."""

import base64
import contextlib
import http.client
import json
import os
import signal
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, Unpack

from controlplane import assets, audit
from controlplane.access import POLL_SECONDS, Access, ApiError, Json, run_kubectl
from controlplane.components import COMPONENTS, NODE, USERS, flags
from controlplane.connections import Connections
from controlplane.layout import Layout
from controlplane.processes import Supervisor, tail

START_SECONDS_MAX = 90.0
ATTEMPTS = 3
OPTIONAL = COMPONENTS[2:]
LIFELESS = {"configmaps", "events", "secrets", "serviceaccounts"}
"""Resources whose objects no controller acts upon."""
GOGC = "400"
"""Growth of a component's heap between garbage collections, in percent: time is dearer here than memory."""


class StartError(Exception):
    """A component ended or did not become ready; the message ends with its log and says where the logs are kept."""


class PortTakenError(StartError):
    """Another process was faster to take a port."""


class Cluster(Access):
    """etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok on loopback, in one run folder.

    `components` leaves some of the last three away; `flags` adds flags to those of a component, such as
    `{"kube-controller-manager": ["--kube-api-qps=1000"]}`, where a later flag wins over ours. Each component
    computes on so many `cores`, else on all: with 1 it takes a tenth less CPU time. All public attributes are
    valid between `start` and `stop`. No process outlives the one that made this object.
    """

    folder: Path
    url: str
    ca_file: Path
    tokens: Mapping[str, str]
    """Bearer tokens of two administrators, by user name: `tok-a` and `tok-b`."""

    def __init__(
        self,
        *,
        components: Sequence[str] = COMPONENTS,
        flags: Mapping[str, Sequence[str]] | None = None,
        cores: int | None = None,
    ) -> None:
        self._components = ("etcd", "kube-apiserver", *(each for each in components if each in OPTIONAL))
        self._flags = flags or {}
        self._go = {"GOGC": GOGC} | ({"GOMAXPROCS": str(cores)} if cores else {})
        self._started: set[str] = set()
        self._disturbed = False
        self._api = Connections(self._connect)

    def start(self) -> Self:
        """Start everything and wait until it is ready. Raises `StartError`, and then nothing runs any more."""
        self._binaries = assets.require(os.environ, {*self._components, "kubectl"})
        for attempt in range(1, ATTEMPTS + 1):
            self._supervisor = Supervisor()
            self.folder = self._supervisor.folder
            self._started.clear()
            try:
                self._prepare()
                self._start_components()
            except PortTakenError:
                self._supervisor.close()
                if attempt == ATTEMPTS:
                    raise
            except BaseException as error:
                if isinstance(error, StartError):
                    self.keep_logs()
                self._supervisor.close()
                raise
            else:
                break
        return self

    def stop(self) -> None:
        """End every process and remove the folder, but for logs that are to be kept."""
        self.disconnect()
        self._supervisor.close()

    def keep_logs(self) -> Path:
        """Keep the logs when everything else is removed; returns their folder."""
        self._supervisor.keep_logs()
        return self._supervisor.logs

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Operations of tests.

    def request(self, method: str, path: str, body: object = None) -> Json:
        """Send one request as administrator and return the decoded answer. Raises `ApiError`."""
        answer: Json = json.loads(self._api.exchange(method, path, body))
        return answer

    def disconnect(self) -> None:
        """Close the connections that `request` keeps for the next one; it makes new ones."""
        self._api.close()

    def kubectl(self, *args: str, input: str | None = None) -> str:  # noqa: A002
        """Run kubectl as administrator, with a home and a discovery cache of its own: no other cluster's are used."""
        env = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.folder),
            "KUBECACHEDIR": str(self.folder / "kubectl"),
            "KUBECONFIG": str(self.kubeconfig),
        }
        return run_kubectl(self._binaries["kubectl"], env, args, input)

    def user(self, name: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for any user, by client certificate. What the user may do is up to RBAC."""
        return self._layout.add_user(name, groups)

    def audit_mark(self) -> int:
        """This moment in the audit log, for `audit(since=…)`."""
        log = self._layout.audit_log
        return log.stat().st_size if log.exists() else 0

    def audit(self, *, since: int = 0, **fields: Unpack[audit.Fields]) -> list[audit.AuditRecord]:
        """The requests that the API server answered, in order: see `audit.read`."""
        return audit.read(self._layout.audit_log, since=since, **fields)

    # Breaking it, and mending it.

    def stop_apiserver(self) -> None:
        """Kill the API server at once, as a crash would: every connection to it breaks."""
        self._supervisor.kill("kube-apiserver")
        self._started.discard("kube-apiserver")
        self._disturbed = True

    def start_apiserver(self) -> None:
        """Start it again, on the same port and data, and wait until it is ready."""
        self._start("kube-apiserver")
        self._wait("/readyz of kube-apiserver", self._is_ready)

    def restart_apiserver(self) -> None:
        """Kill the API server and start it again."""
        self.stop_apiserver()
        self.start_apiserver()

    def pause_apiserver(self) -> None:
        """Freeze the API server: connections stay open, and nothing comes any more."""
        self._supervisor.signal("kube-apiserver", signal.SIGSTOP)
        self._disturbed = True

    def resume_apiserver(self) -> None:
        """Let a frozen API server go on."""
        self._supervisor.signal("kube-apiserver", signal.SIGCONT)

    def compact_etcd(self) -> int:
        """Make etcd forget all of its history up to now, and return the revision at which it now begins.

        The API server may still serve old versions from its watch cache: see `expire_resource_versions`.
        """
        key = base64.b64encode(b"pilotage/compaction").decode()
        # A new revision first, so that every resourceVersion seen so far is older than the beginning of history.
        revision = int(self._etcd("put", {"key": key, "value": ""})["header"]["revision"])
        self._etcd("compaction", {"revision": revision, "physical": True})
        return revision

    def expire_resource_versions(self) -> None:
        """Let every resourceVersion that was seen before be answered with 410, for a watch as for a list.

        Both places with a history lose it: etcd is compacted, and the API server restarted.
        """
        self.compact_etcd()
        self.restart_apiserver()

    def repair(self) -> None:
        """Bring a control plane that a test has stopped or paused back to where `start` left it."""
        if not self._disturbed:
            return
        for component in self._components:
            if not self._supervisor.is_running(component):
                self._start(component)
        self.resume_apiserver()
        self._wait_until_ready()
        self._disturbed = False

    # How it is put together.

    def _prepare(self) -> None:
        """Write all files that the components read."""
        self._layout = layout = Layout.create(self.folder)
        for user, groups in USERS.items():
            layout.add_user(user, groups)
        self.url = layout.api_url
        self.ca_file = layout.ca.certificate
        self.tokens = layout.tokens
        self.kubeconfig = layout.kubeconfig("kubernetes-admin")
        admin = layout.certificate("kubernetes-admin")
        self._admin_tls = ssl.create_default_context(cafile=self.ca_file)
        self._admin_tls.load_cert_chain(admin.certificate, admin.key)

    def _start_components(self) -> None:
        self._start("etcd")
        self.start_apiserver()  # it waits for etcd by itself
        for component in self._components:
            if component in OPTIONAL:
                self._start(component)
        if "kwok" in self._components:
            self.request("POST", "/api/v1/nodes", NODE)
        self._wait_until_ready()

    def _start(self, component: str) -> None:
        argv = [str(self._binaries[component]), *flags(component, self._layout), *self._flags.get(component, ())]
        self._started.add(component)
        # Nothing of the user's environment: etcd, for one, refuses to start when a variable repeats a flag.
        env = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.folder), **self._go}
        self._supervisor.start(component, argv, env=env)

    def _wait_until_ready(self) -> None:
        self._wait("/readyz of kube-apiserver", self._is_ready)
        if "kube-controller-manager" in self._components:
            self._wait(
                "ServiceAccount default", lambda: self.find("/api/v1/namespaces/default/serviceaccounts/default")
            )
        if "kwok" in self._components:
            self._wait("ready node", self._node_is_ready)

    def _is_ready(self) -> bool:
        # It takes connections long before it answers on them, and where etcd has ended it never will.
        try:
            with contextlib.closing(Connections(lambda: self._connect(timeout=1.0))) as api:
                api.exchange("GET", "/readyz")
        except (OSError, ApiError):
            return False
        return True

    def _node_is_ready(self) -> bool:
        node = self.request("GET", f"/api/v1/nodes/{NODE['metadata']['name']}")
        if "kube-controller-manager" in self._components and node["spec"].get("taints"):
            return False  # the API server taints a new node, and the controller manager takes the taint away
        return any(
            each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", ())
        )

    def _wait(self, what: str, condition: Callable[[], Any]) -> None:
        """Wait for a condition, but not when a component has ended, without which it can never come true."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while not condition():
            for component in filter(self._started.__contains__, self._components):  # the first to end is the cause
                if (code := self._supervisor.exit_code(component)) is not None:
                    raise self._start_error(component, f"{component} ended with exit code {code}")
            if time.monotonic() > deadline:
                raise self._start_error("kube-apiserver", f"after {START_SECONDS_MAX:.0f} s still no {what}")
            time.sleep(POLL_SECONDS)

    def _start_error(self, component: str, what: str) -> StartError:
        log = self._supervisor.log(component)
        end = tail(log)
        kind = PortTakenError if "address already in use" in end else StartError
        return kind(f"{what}; its log is kept in {log} and ends:\n{end}")

    def _connect(self, timeout: float = 30.0) -> http.client.HTTPConnection:
        port = self._layout.ports.api
        return http.client.HTTPSConnection("127.0.0.1", port, context=self._admin_tls, timeout=timeout)

    def _etcd(self, method: str, body: object) -> Json:
        with contextlib.closing(Connections(self._connect_to_etcd)) as etcd:
            answer: Json = json.loads(etcd.exchange("POST", f"/v3/kv/{method}", body))
        return answer

    def _connect_to_etcd(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._layout.ports.etcd, timeout=30)

    def _delete_namespace(self, name: str) -> None:
        """Delete it without waiting: it ends with etcd at the latest.

        A namespace with `LIFELESS` objects only is not deleted at all: that would take the API server and its
        controllers some 70 requests, which is more than most tests do.
        """
        if not self.contents(name) <= LIFELESS:
            self.request("DELETE", f"/api/v1/namespaces/{name}")

    def contents(self, namespace: str) -> set[str]:
        """The kinds of which there are objects in a namespace, as etcd has them: ``services/specs``, ``configmaps``."""
        every = {"key": b"/registry/", "range_end": b"/registry0"}
        asked = {field: base64.b64encode(value).decode() for field, value in every.items()}
        found = self._etcd("range", {**asked, "keys_only": True}).get("kvs", ())
        keys = [base64.b64decode(each["key"]).decode().split("/") for each in found]
        return {"/".join(parts[2:-2]) for parts in keys if parts[-2] == namespace and len(parts) > 4}

    def wait_for_service_account(self, namespace: str) -> None:
        """Wait until pods can be created in a namespace; at once without a controller that creates ServiceAccounts."""
        if "kube-controller-manager" in self._components:
            super().wait_for_service_account(namespace)
