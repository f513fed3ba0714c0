"""Commands that `up` and `down` print: they mean the same folder when they are pasted."""

import asyncio
import os
import socket

import pytest

from pilotage.api.names import ENDPOINTS
from pilotage.kube import Client, load_config
from pilotage.processes import identity
from pilotage.up import leftovers
from pilotage.up.down import delete_all
from pilotage.up.layout import Layout, UpState
from pilotage.up.leftovers import UpError
from tests.api.objects import endpoint, install
from tests.harbor.server.test_run import harbor


def test_what_is_left_is_taken_down_in_its_own_folder(tmp_path, monkeypatch):
    layout, this = Layout(tmp_path), identity.find(os.getpid()).id
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = leftovers.find(layout, UpState(this, {"harbor": this}, {"harbor": port}, "http://127.0.0.1:1"))
        assert f"ports {port}. Run `pilotage down --data {tmp_path}` again" in str(found)
        monkeypatch.setenv("PILOTAGE_DATA", str(tmp_path))
        assert "Run `pilotage down` again" in str(found)


def test_an_endpoint_that_does_not_go_is_explained_on_its_own_api_server(tmp_path):
    layout = Layout(tmp_path)

    async def purge():
        async with Client.connect(load_config(kubeconfig=str(layout.kubeconfig))) as client:
            await install(client)
            stuck = endpoint("chat", namespace="default", finalizers=["example.com/hold"])
            await client.create(ENDPOINTS, stuck)
        await delete_all(layout, lambda _: None, 0.1)

    with harbor(layout.harbor, "--memory"), pytest.raises(UpError) as raised:
        asyncio.run(purge())
    why = f"pilotage why servingendpoint/chat -n default --kubeconfig {layout.kubeconfig}"
    assert str(raised.value) == (
        f"ServingEndpoint default/chat was not deleted in 0.1 s. Everything still runs. Ask why, then try again: {why}"
    )
