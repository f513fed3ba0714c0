"""Seals: the proof that an object was made by the operator, for one endpoint.

Labels say which endpoint an object belongs to, and whoever may edit a namespace can write any label there. So every
part carries a seal, an HMAC over its namespace, kind, name and the endpoint's uid. A seal that is copied to another
object does not fit it. The key is in a Secret of the operator's own namespace, which the first operator makes.

When the key is lost, the next operator makes another one. The parts of endpoints that exist are then known by the uids
in the endpoint's `status.ledger`, and are sealed again. What an endpoint that is gone has left is not recognised.
"""

import asyncio
import base64
import binascii
import hmac
import secrets
from collections.abc import Container
from typing import Protocol

import structlog

from pilotage.api.names import ANNOTATION_SEAL, LABEL_ENDPOINT_UID
from pilotage.kube import SECRETS, Absent, AlreadyExists, Client, Json, Object, ObjectKey, Resource
from pilotage.serving.parts import DesiredObject

_log = structlog.get_logger(__name__)

SECRET_NAME = "pilotage-seal"  # noqa: S105 - the name of a Secret
KEY_BYTES = 32
KEPT = "kept/"
"""Prefix of a text in the place of a uid: no uid has a slash."""


class Identity(Protocol):
    """An endpoint, as far as it decides what its parts are."""

    @property
    def namespace(self) -> str:
        """The only one that its parts can be in."""

    @property
    def uid(self) -> str:
        """The one that its parts are sealed for."""

    @property
    def ledger(self) -> Container[str]:
        """The uids of parts in its status; none where the endpoint itself is gone."""


class KeyUnusable(Exception):
    """The Secret with the key is there, and has no key in it."""


class Seals:
    """Makes seals and checks them. `unlock` comes before anything else."""

    def __init__(self, namespace: str, key: bytes = b"") -> None:
        """`namespace`: the operator's own. `key`: instead of the one in the Secret there."""
        self._place = ObjectKey(namespace, SECRET_NAME)
        self._key = key
        self._loading = asyncio.Lock()

    async def unlock(self, client: Client) -> None:
        """Have the key, which is read or made once. Raises ApiError, and KeyUnusable."""
        if self._key:
            return
        async with self._loading:
            self._key = self._key or await self._load(client)

    async def _load(self, client: Client) -> bytes:
        try:
            return self._read(await client.get(SECRETS, self._place))
        except Absent:
            key = secrets.token_bytes(KEY_BYTES)
        body: Json = {
            "metadata": {"namespace": self._place.namespace, "name": self._place.name},
            "immutable": True,
            "data": {"key": base64.b64encode(key).decode()},
        }
        try:
            await client.create(SECRETS, body)
        except AlreadyExists:  # another operator was faster
            return self._read(await client.get(SECRETS, self._place))
        _log.warning(
            "made a new key for the seals of parts; what was sealed with another key, or by no operator so far, counts "
            "by the ledger of its endpoint and is sealed again",
            secret=str(self._place),
        )
        return key

    def _read(self, secret: Object) -> bytes:
        try:
            key = base64.b64decode(secret.get("data", "key", default=""), validate=True)
        except (binascii.Error, TypeError, ValueError):
            key = b""
        if len(key) != KEY_BYTES:
            raise KeyUnusable(
                f"secret/{self._place.name} -n {self._place.namespace} has no entry `key` of {KEY_BYTES} bytes. Restore"
                " it from a backup, or delete it: then a new key is created, and the parts of endpoints sealed again."
            )
        return key

    def sealed(self, whose: Identity, wanted: DesiredObject) -> DesiredObject:
        """The same part with its seal."""
        metadata: Json = wanted.body["metadata"]
        seal = self.seal(wanted.resource, ObjectKey(whose.namespace, wanted.name), whose.uid)
        annotations = {**metadata.get("annotations", {}), ANNOTATION_SEAL: seal}
        return wanted._replace(body=wanted.body | {"metadata": metadata | {"annotations": annotations}})

    def is_part(self, whose: Identity, resource: Resource, obj: Object) -> bool:
        """Whether an object is proven to be a part of an endpoint, by itself: its owners are not looked at."""
        meta = obj.meta
        if meta.namespace != whose.namespace or KEPT in whose.uid:  # a Teardown may name anything as a uid
            return False
        if meta.uid in whose.ledger and meta.labels.get(LABEL_ENDPOINT_UID) == whose.uid:
            return True
        return self.fits(resource, obj, whose.uid)

    def fits(self, resource: Resource, obj: Object, whose: str) -> bool:
        """Whether an object carries the seal for an endpoint's uid, or for what `kept_for` gives."""
        found = obj.meta.annotations.get(ANNOTATION_SEAL, "")
        if not found or not found.isascii():  # most of what others label has none
            return False
        return hmac.compare_digest(found, self.seal(resource, obj.key, whose))

    def seal(self, resource: Resource, key: ObjectKey, whose: str) -> str:
        """The seal of one object."""
        assert self._key, "unlock() comes first"
        text = "\n".join((key.namespace, resource.group, resource.kind, key.name, whose))  # none has a line end in it
        return hmac.digest(self._key, text.encode(), "sha256").hex()


def kept_for(endpoint: str) -> str:
    """Text in place of a uid, for objects that an endpoint left on purpose to the next one of its name."""
    return f"{KEPT}{endpoint}"
