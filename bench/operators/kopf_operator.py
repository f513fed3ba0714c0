"""The operator on kopf, with its defaults but for two: it posts no Events and has no peers. See the package."""

import logging
import os
import sys
from typing import Any

import kopf

from bench.meter import end_with_parent
from bench.operators import GROUP, PLURAL, POLL_SECONDS, VERSION, World

kubeconfig, namespace, polls = sys.argv[1:]
os.environ["KUBECONFIG"] = kubeconfig
world = World(int(polls))


def login(**kwargs: Any) -> Any:  # noqa: ANN401
    """Log in without a Kubernetes client library, which kopf would otherwise load to read the kubeconfig."""
    return kopf.login_with_kubeconfig(**kwargs)


def configure(settings: kopf.OperatorSettings, **_: Any) -> None:  # noqa: ANN401
    settings.posting.enabled = False


async def created(name: str, spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:  # noqa: ANN401
    if not world.ready_for(name):
        raise kopf.TemporaryError("not ready yet", delay=POLL_SECONDS)
    patch.status.update({"phase": "Ready", "size": spec["size"]})


async def updated(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:  # noqa: ANN401
    patch.status.update({"phase": "Ready", "size": spec["size"]})


async def deleted(**_: Any) -> None:  # noqa: ANN401
    """kopf takes its finalizer away by itself."""


kopf.on.login()(login)
kopf.on.startup()(configure)
kopf.on.create(GROUP, VERSION, PLURAL)(created)
kopf.on.update(GROUP, VERSION, PLURAL)(updated)
kopf.on.delete(GROUP, VERSION, PLURAL)(deleted)
logging.disable(logging.CRITICAL)  # the driver sees what fails; so logging costs nothing here
end_with_parent()
kopf.run(standalone=True, namespaces=[namespace])
