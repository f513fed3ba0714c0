"""s3://, gs:// and az://: objects in buckets, through obstore (the extra `buckets`), imported when one is opened.

A Model without a Secret reads as nobody, unless whoever runs the fetcher has allowed its own identity
(`Access.ambient`). Where the service is, comes from the environment of the fetcher (such as AWS_ENDPOINT_URL), never
from a Secret: obstore connects by itself, so an address that a user could choose could not be judged here. So of a
Secret only named entries are passed on, and of a key file only named members. obstore completes credentials from the
environment, piece by piece: where a Secret is given, it gets them from a provider, which leaves no gap to fill.
"""

import contextlib
import datetime as dt
import json
import re
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

from pilotage.models.access import SourceCredentials
from pilotage.models.problems import PermanentError, Problem, Reason, TransientError
from pilotage.models.source import BucketSource
from pilotage.models.sources import Opened, Wanted
from pilotage.models.sources.files import CHUNK_BYTES

_CLIENT: dict[str, Any] = {
    "connect_timeout": dt.timedelta(seconds=15),
    "read_timeout": dt.timedelta(seconds=60),
    "timeout": dt.timedelta(days=7),  # of the whole; its default would cut every large file off after 30 s
    "user_agent": "pilotage",
}
_RETRY: dict[str, Any] = {"max_retries": 0}
"""No retries of the library: the caller decides when to retry, and reports it."""
_SERVICE_ACCOUNT = ("type", "private_key", "private_key_id", "client_email")
"""The members of a Google key file that prove an identity. Others say where to connect to, and whether to sign."""
_REGION = re.compile(r"[a-z0-9-]{1,40}")
_STATUS = re.compile(r"\b(?:status|code:?|with) (\d{3})\b|\b([45]\d\d) [A-Z][a-z]+\b")


@contextlib.asynccontextmanager
async def open_source(source: BucketSource, wanted: Wanted) -> AsyncIterator[Opened]:
    """Open an object of a bucket."""
    async with open_object(_store(source, wanted), source, wanted) as opened:
        yield opened


@contextlib.asynccontextmanager
async def open_object(store: Any, source: BucketSource, wanted: Wanted) -> AsyncIterator[Opened]:  # noqa: ANN401 - any of obstore's
    """Open an object of a store."""
    obstore = _obstore()
    start = wanted.start if wanted.validator else 0
    options: dict[str, Any] = {"range": {"offset": start}, "if_match": wanted.validator} if start else {}
    try:
        try:
            found = await obstore.get_async(store, source.key, options=options)
        except obstore.exceptions.PreconditionError:
            found = None
        if found is None or (start and not _is_same(found.meta, wanted)):  # it has changed: from the beginning
            start = 0
            found = await obstore.get_async(store, source.key)
    except Exception as error:
        raise _failure(error, source) from error
    meta = found.meta
    yield Opened(start, meta["size"], meta.get("e_tag") or "", _chunks(found, source))


def _is_same(meta: Any, wanted: Wanted) -> bool:  # noqa: ANN401
    """Whether an object is the one that we have the beginning of: not every service heeds If-Match."""
    return bool(meta.get("e_tag") == wanted.validator and wanted.size in (None, meta["size"]))


async def _chunks(found: Any, source: BucketSource) -> AsyncIterator[bytes]:  # noqa: ANN401
    try:
        async for chunk in found.stream(min_chunk_size=CHUNK_BYTES):
            yield bytes(chunk)
    except Exception as error:
        raise _failure(error, source) from error


def _obstore() -> Any:  # noqa: ANN401 - a module, which is not everywhere
    return import_module("obstore")


def _store(source: BucketSource, wanted: Wanted) -> Any:  # noqa: ANN401
    try:
        stores = _obstore().store
    except ImportError:
        raise PermanentError(
            Reason.NOT_SUPPORTED,
            f"{source} cannot be fetched: support for buckets is not installed here",
            "Let the administrator install it (pip install 'pilotage[buckets]'), or use https://",
        ) from None
    client = {**_CLIENT, "allow_http": wanted.access.plain_http}
    own = {} if wanted.access.ambient else {"skip_signature": True}
    given = wanted.credentials
    if given.get("endpoint", "aws_endpoint", "aws_endpoint_url", "azure_storage_endpoint", "google_service_path"):
        raise PermanentError(
            Reason.SECRET_UNUSABLE,
            f"the Secret for {source} names an endpoint, which Pilotage does not take from Secrets",
            "Remove it, and let the administrator set it for Pilotage (AWS_ENDPOINT_URL)",
        )
    try:
        match source.scheme:
            case "s3":
                return stores.S3Store(
                    source.bucket, client_options=client, retry_config=_RETRY, **_region(given), **(_s3(given) or own)
                )
            case "gs":
                return stores.GCSStore(source.bucket, client_options=client, retry_config=_RETRY, **(_gs(given) or own))
            case _:
                return stores.AzureStore(
                    source.bucket,
                    account_name=source.account,
                    client_options=client,
                    retry_config=_RETRY,
                    **(_az(given) or own),
                )
    except Exception as error:
        raise PermanentError(
            Reason.SECRET_UNUSABLE,
            f"the credentials for {source} cannot be used",
            "Put the entries that the documentation names for this kind of source into the Secret",
        ) from error


def _region(given: SourceCredentials) -> dict[str, Any]:
    region = given.get("region", "aws_region", "aws_default_region")
    if region and not _REGION.fullmatch(region):  # it becomes part of a host's name
        raise ValueError("no region")
    return {"region": region} if region else {}


def _s3(given: SourceCredentials) -> dict[str, Any]:
    key, secret = given.get("aws_access_key_id"), given.get("aws_secret_access_key")
    if not key or not secret:
        return {}
    token = given.get("aws_session_token") or None
    return _provided(access_key_id=key, secret_access_key=secret, token=token)


def _gs(given: SourceCredentials) -> dict[str, Any]:
    text = given.get("google_service_account_key", "service_account_key", "key.json")
    if not text:
        return {}
    key = json.loads(text)
    members = {name: key[name] for name in _SERVICE_ACCOUNT}
    if not all(isinstance(value, str) for value in members.values()):
        raise ValueError("no key of a service account")
    return {"service_account_key": json.dumps(members)}


def _az(given: SourceCredentials) -> dict[str, Any]:
    if key := given.get("azure_storage_account_key", "account_key"):
        return _provided(access_key=key)
    if sas := given.get("azure_storage_sas_key", "sas_key", "sas_token"):
        return _provided(sas_token=sas)
    return {}


def _provided(**credentials: str | None) -> dict[str, Any]:
    """These credentials and nothing of the environment's."""
    answer = {**credentials, "expires_at": None}
    return {"credential_provider": lambda: answer}


def _failure(error: Exception, source: BucketSource) -> Problem:
    """obstore's errors, by their class; where it has none, by the status in their text."""
    exceptions = _obstore().exceptions
    match error:
        case FileNotFoundError() | exceptions.NotFoundError():
            return PermanentError(Reason.NOT_FOUND, f"{source} does not exist", "Put it there, or change spec.source")
        case exceptions.UnauthenticatedError():
            reason = Reason.UNAUTHORIZED
        case exceptions.PermissionDeniedError():
            reason = Reason.FORBIDDEN
        case exceptions.InvalidPathError():
            return PermanentError(Reason.INVALID_SOURCE, f"{source} is no name of an object", "Change spec.source")
        case TimeoutError():
            return TransientError(Reason.TIMED_OUT, f"{source} was not answered in time")
        case _:
            found = _STATUS.search(str(error))
            status = int(found[1] or found[2]) if found else 0
            if status == 429:
                return TransientError(Reason.THROTTLED, f"{source} was answered with {status}")
            if status not in (400, 401, 403):
                answered = f"{source} was answered with {status}" if status else f"the connection for {source} failed"
                return TransientError(Reason.SERVER_ERROR if status else Reason.CONNECTION, answered)
            reason = Reason.UNAUTHORIZED if status == 401 else Reason.FORBIDDEN if status == 403 else Reason.REFUSED
    return PermanentError(
        reason,
        f"{source} may not be read with the credentials that were given",
        "Name a Secret with the right entries in spec.secretRef, or change spec.source",
    )
