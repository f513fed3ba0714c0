"""``--model`` of a command line: the model that is meant, checked as far as this machine can tell."""

import os
from pathlib import Path
from shlex import join

from pilotage.cli.connection import ClusterChoice
from pilotage.cli.errors import BadTarget
from pilotage.cli.output.text import note
from pilotage.rollout.model_argument import ModelReference, OnHub, model_reference
from pilotage.rollout.spec import SpecArguments
from pilotage.teardown.session import Session
from pilotage.up.layout import Layout, default_folder


async def with_model(session: Session, cluster: ClusterChoice, given: SpecArguments, namespace: str) -> SpecArguments:
    """The arguments with the model in full. Raises RequestError, and BadTarget for a file that cannot be read."""
    if given.model is None:
        return given
    try:
        model = model_reference(given.model, Path.cwd())
    except OnHub as error:
        if known := await _model_of(session, namespace, error.repository):
            raise BadTarget(f"{error} model/{known} -n {namespace} has it: --model {known}") from None
        raise
    if "://" not in model.text and _is_here(model.text):
        await _check_model(session, namespace, model.text)
    if given.placement in (None, "Host"):
        _check_file(model, session, cluster, natural=model.text != given.model)
    return given._replace(model=model.text)


def _is_here(name: str) -> bool:
    return Path(name).is_file()


async def _check_model(session: Session, namespace: str, name: str) -> None:
    """Refuse the name of a file for that of a Model, if there is no such Model."""
    from pilotage.api.names import MODELS
    from pilotage.kube import Absent, Forbidden, ObjectKey

    try:
        await session.client.get(MODELS, ObjectKey(namespace, name), metadata_only=True)
    except Absent:
        raise BadTarget(f"There is no model/{name} -n {namespace}. For the file here write: --model ./{name}") from None
    except Forbidden:
        return


async def _model_of(session: Session, namespace: str, repository: str) -> str:
    """The name of a Model whose source is in a repository of the Hub; empty where there is none."""
    from pilotage.api.names import MODELS
    from pilotage.kube import ApiError

    try:
        listed = await session.client.list(MODELS, namespace)
    except ApiError:
        return ""  # a hint less
    sources = {obj.meta.name: f"{obj.get('spec', 'source', default='')}/" for obj in listed.items}
    return min((name for name, source in sources.items() if source.startswith(f"hf://{repository}/")), default="")


def _check_file(model: ModelReference, session: Session, cluster: ClusterChoice, *, natural: bool) -> None:
    """Refuse a file that `pilotage up` of this machine cannot read. For other clusters, only warn that it is not here.

    `natural`: it was written as a path, so it is probably meant to be a file of this machine.
    """
    file = model.file
    if file is None:
        return
    machine = _machine_of(session, cluster)
    if machine is None:
        if natural and not file.exists():
            note(f"There is no {file} on this machine. It has to exist on the machine that serves it.")
        return
    if not file.exists():
        raise BadTarget(f"There is no file {file}.")
    from pilotage.up.settings import remembered

    roots = [*remembered(machine).get("file_roots", ())]
    if not any(file.resolve().is_relative_to(Path(root).resolve()) for root in roots):
        data = [] if machine.folder == default_folder() else ["--data", str(machine.folder)]
        flags = [word for root in (*roots, str(file.parent)) for word in ("--file-roots", root)]
        allowed = f"may read {', '.join(roots)}" if roots else "may read no folder yet"
        raise BadTarget(
            f"{file} cannot be served: `pilotage up` {allowed}. Allow its folder with: "
            f"{join(['pilotage', 'down', *data])} && {join(['pilotage', 'up', '-d', *data, *flags])}"
        )


def _machine_of(session: Session, cluster: ClusterChoice) -> Layout | None:
    """The folder of the `pilotage up` of this machine whose API server the session talks to."""
    files = [cluster.kubeconfig] if cluster.kubeconfig else os.environ.get("KUBECONFIG", "").split(os.pathsep)
    folders = [default_folder(), *(Path(each).absolute().parent.parent for each in files if each)]
    return next((each for each in map(Layout, folders) if _serves(each, session.server)), None)


def _serves(layout: Layout, server: str) -> bool:
    from pilotage.kube import ConfigError, load_config
    from pilotage.private_files import check_private

    try:
        check_private(layout.folder)
        check_private(layout.harbor)
        return layout.running() is not None and load_config(kubeconfig=str(layout.kubeconfig)).server == server
    except (OSError, ConfigError):
        return False
