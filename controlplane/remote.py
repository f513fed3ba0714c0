"""A cluster of the user's own, named by PILOTAGE_TEST_KUBECONFIG."""

import json
import os
import re
import shutil
from pathlib import Path

from controlplane import assets
from controlplane.access import Access, ApiError, Json, KubectlError, run_kubectl, wait_for

VERBS = {"GET": "get", "POST": "create", "PUT": "replace", "DELETE": "delete"}


class RemoteCluster(Access):
    """Reached by kubectl alone, which knows every way to log in. Nothing is started, and nothing is left there."""

    def __init__(self, kubeconfig: Path) -> None:
        """Take kubectl from `assets` where it is there, else from the PATH. Raises `NoControlPlane` without one."""
        self.kubeconfig = kubeconfig
        on_path = shutil.which("kubectl")
        found = assets.find(os.environ).get("kubectl") or (Path(on_path) if on_path else None)
        if found is None:
            raise assets.NoControlPlane("there is no kubectl: run `make kube`, or put one on the PATH")
        self._binary = found

    def kubectl(self, *args: str, input: str | None = None) -> str:  # noqa: A002
        """Run kubectl as administrator and return what it printed. Raises `KubectlError`."""
        return run_kubectl(self._binary, {**os.environ, "KUBECONFIG": str(self.kubeconfig)}, args, input)

    def request(self, method: str, path: str, body: object = None) -> Json:
        """Send one request as administrator and return the decoded answer. Raises `ApiError`."""
        arguments = [VERBS[method], f"--raw={path}"]
        if body is not None:
            arguments.append("--filename=-")
        try:
            answer: Json = json.loads(self.kubectl(*arguments, input=None if body is None else json.dumps(body)))
        except KubectlError as error:
            reason = re.search(r"Error from server \((\w+)\)", str(error))
            if reason is None:
                raise
            raise ApiError(reason[1], str(error)) from error
        return answer

    def _delete_namespace(self, name: str) -> None:
        path = f"/api/v1/namespaces/{name}"
        self.request("DELETE", path)
        wait_for(f"end of namespace {name}, which should be deleted,", lambda: self.find(path) is None, timeout=120)
