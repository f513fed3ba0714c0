"""The operator's own account on a real API server."""

import pytest
import yaml

from pilotage.operator.install import NAME, Values, manifests


@pytest.fixture
def account(own_cluster, namespace_for_pods, tmp_path):
    """The kubeconfig of the operator's service account, which has the installed roles and nothing else."""
    rbac = [each for each in manifests(Values(namespace=namespace_for_pods)) if "Role" in each["kind"]]
    for obj in rbac:  # those for the whole cluster get names of their own
        if "namespace" not in obj["metadata"]:
            obj["metadata"]["name"] += f"-{namespace_for_pods}"
            if obj["kind"] == "ClusterRoleBinding":
                obj["roleRef"]["name"] += f"-{namespace_for_pods}"
    text = yaml.safe_dump_all(rbac)
    hosts = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "pilotage-hosts"}}
    own_cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(hosts))
    own_cluster.kubectl("create", "serviceaccount", NAME, "-n", namespace_for_pods)
    own_cluster.kubectl("create", "-f", "-", input=text)
    config = yaml.safe_load(own_cluster.kubeconfig.read_text())
    token = own_cluster.kubectl("create", "token", NAME, "-n", namespace_for_pods).strip()
    config["users"] = [{"name": "sa", "user": {"token": token}}]
    config["contexts"][0]["context"]["user"] = "sa"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    yield path
    own_cluster.kubectl("delete", "--wait=false", "-f", "-", input=text)
