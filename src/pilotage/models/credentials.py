"""The credentials of a Model: one Secret of its own namespace, read when it is needed and kept nowhere.

A Model may be written by somebody who may not read Secrets. So only a Secret that is made for such a use is taken:
never the token of a service account, a certificate or what another program keeps in a type of its own. Where it may be
sent is decided by the kind of source.
"""

import base64
import binascii

from pilotage.kube import SECRETS, Absent, ApiError, Client, Forbidden, ObjectKey
from pilotage.models import PermanentError, Reason, SourceCredentials, TransientError

TYPES = ("Opaque", "kubernetes.io/basic-auth")
"""The types of Secrets that hold credentials of a source."""


async def read_credentials(client: Client, namespace: str, name: str) -> SourceCredentials:
    """The entries of a Secret; none for the name "". The `Problem` of one that is unusable never repeats an entry."""
    if not name:
        return SourceCredentials()
    shown = f"the Secret {name} in namespace {namespace}"
    try:
        secret = await client.get(SECRETS, ObjectKey(namespace, name))
    except Absent:
        raise PermanentError(
            Reason.SECRET_MISSING, f"{shown} does not exist", "Create it, or change spec.secretRef"
        ) from None
    except Forbidden:
        raise PermanentError(
            Reason.SECRET_UNUSABLE,
            f"{shown} may not be read by Pilotage",
            "Let the administrator allow it to get Secrets",
        ) from None
    except ApiError:
        raise TransientError(Reason.CONNECTION, f"{shown} could not be read from the API server") from None
    if secret.get("type", default="Opaque") not in TYPES:
        raise PermanentError(
            Reason.SECRET_UNUSABLE,
            f"{shown} is not of the type {' or '.join(TYPES)}, and is not sent to any source",
            "Put the credentials of the source into a Secret of their own, and name it in spec.secretRef",
        )
    data = secret.get("data", default={})
    try:
        return SourceCredentials({key: base64.b64decode(value, validate=True).decode() for key, value in data.items()})
    except (binascii.Error, UnicodeDecodeError, TypeError, AttributeError):
        what = f"{shown} has entries that are no text"
        raise PermanentError(Reason.SECRET_UNUSABLE, what, "Put plain text into its entries") from None
