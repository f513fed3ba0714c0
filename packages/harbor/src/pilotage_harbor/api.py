"""Harbor: the Kubernetes API as a plain object. A call comes in, an answer or a stream goes out.

HTTP is one way to call it (`pilotage_harbor.server`), the simulator's transport is another. `handle` never raises.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING

from pilotage_harbor.access import reviews
from pilotage_harbor.access.attributes import attributes_of
from pilotage_harbor.admission.conversion import Unconverted
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import ServerResponse, answer, integer, pause, refuse, telling, warning_headers
from pilotage_harbor.builtin import certificates
from pilotage_harbor.core import NAMESPACES
from pilotage_harbor.core.scope import Scope
from pilotage_harbor.discovery import resources as discovery
from pilotage_harbor.discovery.resources import REVIEWS
from pilotage_harbor.housekeeping.manager import Housekeeping
from pilotage_harbor.storage.store import NotKept
from pilotage_harbor.verbs import bodies, deletions, lists, patches, reads, subresources, writes
from pilotage_harbor.verbs.account_tokens import bearer_of
from pilotage_harbor.verbs.lists import ListStream
from pilotage_harbor.verbs.negotiation import negotiate
from pilotage_harbor.verbs.selection import Choice
from pilotage_harbor.verbs.watchers import Watchers
from pilotage_harbor.verbs.watches import WatchStream

if TYPE_CHECKING:
    from pilotage_harbor.access.attributes import AccessAttributes
    from pilotage_harbor.access.tokens import Tokens
    from pilotage_harbor.apimachinery.calls import Call, Stream
    from pilotage_harbor.core import Core
    from pilotage_harbor.kinds import Kind

_log = logging.getLogger(__name__)

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_CONVERSIONS_MAX = 1000
_DELETED_AT_ONCE = 20
_RETURNS_DELETED = frozenset(
    {
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
        "storageclasses.storage.k8s.io",
    }
)
"""Kinds whose delete is answered with the object's last state, and not with a Status."""


class Harbor:
    """The API without I/O. `start` begins its housekeeping and needs a running loop; `stop` ends it and all watches."""

    def __init__(self, core: Core, tokens: Tokens | None = None) -> None:
        self.core = core
        if tokens is not None:
            core.tokens = tokens
        core.tokens.resolve = functools.partial(bearer_of, core)
        self._watches = Watchers(core)
        self._housekeeping = Housekeeping(core, self.handle)

    async def start(self, *, begun: bool = False) -> None:
        """Begin to collect garbage, delete namespaces and serve custom kinds. See `Housekeeping.start`."""
        await self._housekeeping.start(begun=begun)

    async def stop(self) -> None:
        """End all watches cleanly, and the housekeeping."""
        self._watches.stop()
        await self._housekeeping.stop()

    async def handle(self, call: Call) -> ServerResponse | Stream:
        """Do what is asked, if who asks may."""
        try:
            return await self._handle(call)
        except errors.StatusError as error:
            return refuse(error)
        except errors.PageNotFound:
            return ServerResponse(404, b"404 page not found\n", {"Content-Type": "text/plain; charset=utf-8"})
        except NotKept as error:
            _log.error("%s %s was not kept: %s", call.method, call.path, error)
            return refuse(errors.internal(f"nothing was written, because it could not be kept: {error}"))
        except RecursionError:  # many patches can nest an object more deeply than one may
            return refuse(errors.bad_request("the object would be nested too deeply"))
        except Exception:  # noqa: BLE001 - one request of many must not end the server; the log has the rest
            _log.exception("%s %s failed", call.method, call.path)
            return refuse(errors.internal("harbor has failed; its log says why"))

    async def _handle(self, call: Call) -> ServerResponse | Stream:
        wanted = attributes_of(call.method, call.path, call.query)
        self.core.authorizer.check(call.user, wanted)
        if call.method not in _METHODS:
            raise errors.method_not_allowed()
        if wanted.path:
            if call.path.startswith("/openapi"):
                from pilotage_harbor import openapi  # when first asked: it takes a while, and few ask

                return openapi.serve(self.core, call)
            return discovery.serve(self.core, call)
        scope = self._scope(call, wanted)
        if scope is None:
            return await self._review(call, wanted)
        answered = await self._answered(scope)
        if scope.kind.deprecation:
            warnings = warning_headers([scope.kind.deprecation])
            given = answered.headers.get("Warning")
            warnings["Warning"] += f"\n{given}" if given else ""
            return _with_headers(answered, warnings)
        return answered

    async def _answered(self, scope: Scope) -> ServerResponse | Stream:
        """Do it, and do it again when a webhook had to be asked how an object looks in the version asked for."""
        for _ in range(_CONVERSIONS_MAX):
            try:
                return await (self._subresource(scope) if scope.subresource else self._resource(scope))
            except Unconverted as missing:
                await missing.ask(self.core)
        raise errors.internal("what there is to convert keeps changing")

    def _scope(self, call: Call, wanted: AccessAttributes) -> Scope | None:
        """The target of a path; None for reviews, which are no objects; 404 for a kind that is not served."""
        parts = call.path.split("/")
        version = parts[2] if parts[1] == "api" else parts[3]
        kind = self.core.registry.kind(wanted.group, version, wanted.resource)
        if kind is None:
            if version == "v1" and any(wanted.resource == plural for plural, _, _ in REVIEWS.get(wanted.group, ())):
                return None
            if self.core.registry.is_builtin(wanted.group):
                raise errors.no_such_path()
            raise errors.PageNotFound
        if "%" in wanted.name or "/" in wanted.name or wanted.name in (".", ".."):
            raise errors.bad_request(_bad_name(wanted.name))
        namespace = wanted.namespace if kind.namespaced else ""
        name = "" if wanted.verb in ("list", "watch") else wanted.name
        if wanted.subresource and wanted.subresource not in kind.subresources:
            if kind.custom:
                raise errors.not_found(kind.group, kind.plural, name)
            raise errors.no_such_path()
        if not kind.namespaced and wanted.namespace and not _is_namespace_itself(kind, wanted):
            raise errors.PageNotFound if kind.custom else errors.no_such_path()
        if kind.namespaced and not namespace and (name or call.method not in ("GET", "HEAD")):
            raise errors.method_not_allowed() if call.method == "POST" and not name else errors.no_such_path()
        if wanted.verb == "watch" and parts[3 if parts[1] == "api" else 4] == "watch":
            call = _by_the_old_path(call, wanted)
        return Scope(call, kind, namespace, name, wanted.subresource)

    async def _resource(self, scope: Scope) -> ServerResponse | Stream:
        call, kind, core = scope.call, scope.kind, self.core
        verb = scope.verb
        if (
            call.method == "HEAD"
            or verb not in kind.verbs
            or (verb == "create" and scope.name)
            or (verb in ("update", "patch") and not scope.name)
        ):
            raise errors.method_not_allowed()
        form = negotiate(call.headers.get("accept", ""))
        if verb == "get":
            return await reads.get(core, kind, call, scope.namespace, scope.name, form)
        if verb == "list":
            return await lists.list_(core, kind, call, scope.namespace, form)
        if verb == "watch":
            return self._watch(scope)
        if verb == "delete":
            return await self._delete(scope)
        if verb == "deletecollection":
            return await self._delete_collection(scope)
        write = {"create": writes.create, "update": writes.update, "patch": patches.patch}[verb]
        return await self._written(scope, await write(core, scope))

    async def _subresource(self, scope: Scope) -> ServerResponse | Stream:
        if scope.subresource == "approval":
            scope = scope._replace(kind=certificates.for_approval(scope.kind))
        elif scope.subresource != "status":
            return await subresources.serve(self.core, scope)
        core, call = self.core, scope.call
        form = negotiate(call.headers.get("accept", ""))
        if scope.verb == "get":
            return await reads.get(core, scope.kind, call, scope.namespace, scope.name, form)
        if scope.verb in ("update", "patch"):
            write = writes.update if scope.verb == "update" else patches.patch
            return await self._written(scope, await write(core, scope))
        raise errors.method_not_allowed()

    async def _written(self, scope: Scope, written: writes.Written) -> ServerResponse:
        form = negotiate(scope.call.headers.get("accept", ""))
        status = 201 if written.created else 200
        shown = await reads.shown(self.core, scope.kind, written.entry, scope.call, form, status)
        return shown._replace(headers={**shown.headers, **warning_headers(written.warnings)})

    async def _delete(self, scope: Scope) -> ServerResponse:
        kind = scope.kind
        entry, gone, warnings = await deletions.delete(self.core, scope)
        form = negotiate(scope.call.headers.get("accept", ""))
        if not gone or kind.qualified in _RETURNS_DELETED:
            shown = await reads.shown(self.core, kind, entry, scope.call, form)
            return shown._replace(headers={**shown.headers, **warning_headers(warnings)})
        details = {"name": entry.name, "kind": kind.plural, "uid": entry.uid}
        if kind.group:
            details = {"name": entry.name, "group": kind.group, "kind": kind.plural, "uid": entry.uid}
        return answer(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details},
            200,
            warnings,
        )

    async def _delete_collection(self, scope: Scope) -> ServerResponse | Stream:
        """Delete what a list finds, one by one, and answer with that list."""
        call, kind, core = scope.call, scope.kind, self.core
        options = await deletions.options_of(core, call)
        form = negotiate(call.headers.get("accept", ""))
        page = await lists.choose(core.store, kind, call, scope.namespace)
        listed = await lists.listed(core, kind, page, call, form)
        warnings: list[str] = []
        for at, entry in enumerate(page.entries, 1):
            if not at % _DELETED_AT_ONCE:
                await pause()
            one = scope._replace(namespace=entry.namespace, name=entry.name)
            current = core.store.get(kind.storage, entry.namespace, entry.name)
            if current is not None and current.uid == entry.uid:
                try:
                    with telling(warnings):
                        await deletions.delete_entry(core, one, current, options, warnings)
                except errors.StatusError as error:
                    if error.code != 404:  # somebody else was quicker: it is gone all the same
                        raise
        return _with_headers(listed, warning_headers(warnings))

    def _watch(self, scope: Scope) -> WatchStream:
        call, kind, core = scope.call, scope.kind, self.core
        reads.check_version_options(call, watch=True)
        version = int(call.option("resourceVersion") or 0)
        watch = WatchStream(
            core.store,
            kind,
            Choice(kind, call, scope.namespace),
            negotiate(call.headers.get("accept", "")),
            bookmarks=call.flag("allowWatchBookmarks"),
            seconds=integer(call, "timeoutSeconds"),
            now=core.now,
            on_close=self._watches.discard,
        )
        self._watches.add(watch, call.user, attributes_of(call.method, call.path, call.query))
        try:
            if call.flag("sendInitialEvents") and call.query.get("sendInitialEvents"):
                watch.from_now(initial=True, marked=watch.bookmarks)
            elif version and not call.query.get("sendInitialEvents"):
                watch.from_version(version)
            else:
                watch.from_now(initial="sendInitialEvents" not in call.query, marked=False)
        except Unconverted:
            watch.close()
            raise
        return watch

    async def _review(self, call: Call, wanted: AccessAttributes) -> ServerResponse:
        """A question about access, which is answered and not stored."""
        if call.method != "POST":
            raise errors.method_not_allowed()
        form = negotiate(call.headers.get("accept", ""), table=False)
        core = self.core
        body = await bodies.parsed(core, call)
        reviewed = reviews.answer_to(wanted, body, call.user, core.authorizer, core.now_text(), core.tokens)
        if form.shape == "metadata":
            named = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{form.version}"}
            reviewed = {**named, "metadata": reviewed["metadata"]}
        return answer(reviewed, 201)


def _with_headers(answered: ServerResponse | Stream, more: dict[str, str]) -> ServerResponse | Stream:
    if isinstance(answered, ServerResponse):
        return answered._replace(headers={**answered.headers, **more})
    if isinstance(answered, ListStream):
        answered.headers |= more
    return answered


def _is_namespace_itself(kind: Kind, wanted: AccessAttributes) -> bool:
    """A Namespace is the one kind that is in a namespace by its path: in itself."""
    return kind.storage == NAMESPACES and wanted.name == wanted.namespace


def _by_the_old_path(call: Call, wanted: AccessAttributes) -> Call:
    """A watch that its path asks for, as one that its query asks for: of the one object, if the path has a name."""
    if call.method != "GET":
        raise errors.method_not_allowed()
    if wanted.subresource:
        raise errors.no_such_path()
    query = {**call.query, "watch": ["1"]}
    if wanted.name:
        fields = call.option("fieldSelector")
        query["fieldSelector"] = [f"{fields},metadata.name={wanted.name}" if fields else f"metadata.name={wanted.name}"]
    return call._replace(query=query)


def _bad_name(name: str) -> str:
    if name in (".", ".."):
        return f"Name parameter invalid: \"{name}\": may not be '{name}'"
    return f"Name parameter invalid: \"{name}\": may not contain '{'%' if '%' in name else '/'}'"
