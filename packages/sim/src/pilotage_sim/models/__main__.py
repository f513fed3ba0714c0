"""``python -m pilotage_sim.models --kubeconfig FILE``: the models beside any API server, in real time."""

from __future__ import annotations

import asyncio
import contextlib

import click

from pilotage.kube import Client, load_config
from pilotage.runtime.process import on_signals
from pilotage_sim.models import MODELS, run_all


@click.command()
@click.option("--kubeconfig", type=click.Path(exists=True, dir_okay=False), required=True)
@click.option("--without", multiple=True, type=click.Choice(sorted(MODELS)), help="A model to leave out.")
def main(kubeconfig: str, without: tuple[str, ...]) -> None:
    """Play kube-controller-manager, scheduler and kubelet until interrupted."""

    async def run() -> None:
        async with Client.connect(load_config(kubeconfig=kubeconfig), name="models") as client:
            task = asyncio.ensure_future(run_all(client, leave_out=frozenset(without)))

            def stop() -> None:
                task.cancel()

            with on_signals(stop), contextlib.suppress(asyncio.CancelledError):
                await task

    asyncio.run(run())


if __name__ == "__main__":
    main()
