"""hf://: a file of a repository on the Hugging Face Hub, which is plain https: ``/REPOSITORY/resolve/REVISION/FILE``.

The hub redirects to a store of its own, with another host: the token stays with the hub. Its library would bring its
own cache and its own idea of retries, and nothing that is missing here.
"""

import contextlib
from collections.abc import AsyncIterator
from urllib.parse import quote

from pilotage.models.problems import PermanentError, Reason
from pilotage.models.source import HubSource
from pilotage.models.sources import Opened, Wanted
from pilotage.models.sources.web import WebFile, open_url

TOKENS = ("token", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


@contextlib.asynccontextmanager
async def open_source(source: HubSource, wanted: Wanted) -> AsyncIterator[Opened]:
    """Open a file of a Hugging Face repository."""
    if not source.path:
        what = f"{source} is a whole repository, which is read by the server program itself"
        raise PermanentError(Reason.NOT_SUPPORTED, what, "Name a file of it in spec.source to have it fetched")
    where = f"{source.repository}/resolve/{quote(source.revision, safe='')}/{quote(source.path)}"
    url = f"{wanted.access.hub.rstrip('/')}/{where}"
    token = wanted.credentials.get(*TOKENS)
    # For a repository that does not exist the hub says 401, too: it does not tell strangers which there are.
    what_to_do = (
        "Check its name, and name a Secret with a token (entry `token`) that may read it in spec.secretRef;"
        " the conditions of a gated repository have to be accepted on its page first"
    )
    identity = f"Bearer {token}" if token else ""
    async with open_url(WebFile(url, str(source), identity, what_to_do), wanted) as opened:
        yield opened
