"""CertificateSigningRequests: kept, approved and denied as everywhere; whoever signs them is not part of harbor.

Who asks is written down by the server, and cannot be changed. After that only the status changes: the conditions
Approved and Denied through the subresource `approval`, everything else of it through `status`.
"""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pilotage_harbor.access.attributes import AccessAttributes
from pilotage_harbor.apimachinery.errors import forbidden as refused
from pilotage_harbor.apimachinery.field_errors import duplicate, forbidden, invalid, not_supported, required, too_long
from pilotage_harbor.apimachinery.names import dns_label, dns_subdomain
from pilotage_harbor.apimachinery.users import MASTERS
from pilotage_harbor.builtin.base import Builtin, kind, now, path
from pilotage_harbor.builtin.cells import at, text
from pilotage_harbor.kinds.table import AGE, NAME, duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.apimachinery.users import UserInfo
    from pilotage_harbor.kinds import Json, Kind, View

GROUP = "certificates.k8s.io"
API_CLIENT = "kubernetes.io/kube-apiserver-client"
_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_LEGACY = "kubernetes.io/legacy-unknown"
_SECONDS_MIN = 600
_DOMAIN_MAX = 253
_DECISIONS = ("Approved", "Denied")
_FINAL = (*_DECISIONS, "Failed")
_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\s.*?-----END \1-----", re.DOTALL)


class RequestStrategy(Builtin):
    """A CertificateSigningRequest; see the module."""

    go_type = "certificates.CertificateSigningRequest"
    reset_fields: Mapping[str, tuple[str, ...]] = {"": ("spec", "status"), "status": ("spec", "status.conditions")}

    def name_problems(self, name: str, *, prefix: bool = False) -> list[str]:
        """Any name will do."""
        return []

    def note_author(self, obj: Json, user: UserInfo) -> None:
        """Record the requesting user, whatever the client sent."""
        spec = obj["spec"]
        for name in ("username", "uid", "groups", "extra"):
            spec.pop(name, None)
        said: Json = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
        said["extra"] = {name: list(values) for name, values in user.extra.items()}
        spec.update({name: value for name, value in said.items() if value})

    def prepare_update(self, obj: Json, old: Json, view: View) -> None:
        """Nothing but metadata changes."""
        super().prepare_update(obj, old, view)
        obj["spec"] = old["spec"]

    def prepare_status_update(self, obj: Json, old: Json) -> None:
        """Keep the spec, and what was decided."""
        super().prepare_status_update(obj, old)
        before = (old.get("status") or {}).get("conditions") or []
        conditions = obj.setdefault("status", {}).get("conditions") or []
        for type_ in _DECISIONS:
            was, places = _of(before, type_), [at for at, each in enumerate(conditions) if each["type"] == type_]
            if len(was) == len(places):
                for place, condition in zip(places, was, strict=True):
                    conditions[place] = condition
        _date(conditions, before)

    def check(self, obj: Json) -> list[StatusCause]:
        """The spec and the conditions."""
        spec = obj["spec"]
        usages = spec.get("usages") or []
        problems = _request(spec.get("request"), "spec.request")
        problems += [] if usages else [required("spec.usages")]
        problems += [
            not_supported(f"spec.usages[{index}]", usage, _USAGES)
            for index, usage in enumerate(usages)
            if usage not in _USAGES
        ]
        problems += [
            duplicate(f"spec.usages[{index}]", usage) for index, usage in enumerate(usages) if usage in usages[:index]
        ]
        problems += _signer(spec.get("signerName", ""), "spec.signerName")
        seconds = spec.get("expirationSeconds")
        if seconds is not None and seconds < _SECONDS_MIN:
            why = "may not specify a duration less than 600 seconds (10 minutes)"
            problems.append(invalid("spec.expirationSeconds", seconds, why))
        return problems + _conditions(path(obj, "status", "conditions") or [], "status.conditions")

    def admit(self, obj: Json, old: Json | None, view: View) -> None:
        """Refuse requests for a certificate of an administrator."""
        if old is None:
            _refuse_masters(obj)

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Problems of a changed status: a decision cannot be changed, and a certificate is written once."""
        problems = self.check(obj) + _removed(obj, old)
        was, is_ = (path(each, "status", "conditions") or [] for each in (old, obj))
        for type_ in _DECISIONS:
            if len(_of(is_, type_)) > len(_of(was, type_)):
                problems.append(forbidden("status.conditions", f'updates may not add a condition of type "{type_}"'))
        problems += _certificate(path(obj, "status", "certificate") or "")
        before = path(old, "status", "certificate")
        if before and path(obj, "status", "certificate") != before:
            problems.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
        return problems

    def fields(self, obj: Json) -> dict[str, str]:
        """The signer."""
        return {"spec.signerName": obj["spec"].get("signerName", "")}


class ApprovalStrategy(RequestStrategy):
    """Strategy of the subresource `approval`: it writes conditions of the status, and nothing else."""

    reset_fields: Mapping[str, tuple[str, ...]] = {"approval": ("spec", "status.certificate")}

    def prepare_status_update(self, obj: Json, old: Json) -> None:
        """Keep all but the conditions."""
        Builtin.prepare_status_update(self, obj, old)
        conditions = (obj.get("status") or {}).get("conditions") or []
        _date(conditions, path(old, "status", "conditions") or [])
        obj["status"] = {**(old.get("status") or {}), "conditions": conditions}
        if not conditions:
            del obj["status"]["conditions"]

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Nothing that was decided is taken back."""
        return self.check(obj) + _removed(obj, old)


def may_sign(verb: str, signer: str) -> list[AccessAttributes]:
    """The rights of which somebody needs one to approve what is for a signer, or to sign in its name."""
    names = (signer, f"{signer.partition('/')[0]}/*")
    return [AccessAttributes(verb, GROUP, "signers", name=name) for name in names]


def is_for_the_signer(obj: Json, old: Json) -> bool:
    """Whether a change of the status is one that only the signer makes: of the certificate, or of any condition."""
    was, is_ = (path(each, "status") or {} for each in (old, obj))
    return any(was.get(name) != is_.get(name) for name in ("certificate", "conditions"))


def _refuse_masters(obj: Json) -> None:
    """403 for a request to become an administrator of the API server, as CertificateSubjectRestriction refuses it."""
    from cryptography.x509 import load_pem_x509_csr
    from cryptography.x509.oid import NameOID

    if obj["spec"].get("signerName") != API_CLIENT:
        return
    block = _PEM.search(base64.b64decode(obj["spec"]["request"]))
    assert block is not None
    groups = load_pem_x509_csr(block[0]).subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if any(group.value == MASTERS for group in groups):
        why = f"use of {API_CLIENT} signer with {MASTERS} group is not allowed"
        raise refused(GROUP, "certificatesigningrequests", obj["metadata"].get("name", ""), why)


def for_approval(kind: Kind) -> Kind:
    """The kind as the subresource `approval` sees it."""
    return replace(kind, strategy=_APPROVAL)


_APPROVAL = ApprovalStrategy()


def _of(conditions: list[Json], type_: str) -> list[Json]:
    return [each for each in conditions if each["type"] == type_]


def _removed(obj: Json, old: Json) -> list[StatusCause]:
    was, is_ = (path(each, "status", "conditions") or [] for each in (old, obj))
    return [
        forbidden("status.conditions", f'updates may not remove a condition of type "{type_}"')
        for type_ in _FINAL
        if len(_of(is_, type_)) < len(_of(was, type_))
    ]


def _date(conditions: list[Json], before: list[Json]) -> None:
    """Set the times that are not set; a transition is as old as the status that it led to."""
    for condition in conditions:
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = now()
        if not condition.get("lastTransitionTime"):
            same = (each for each in before if all(each.get(key) == condition.get(key) for key in ("type", "status")))
            condition["lastTransitionTime"] = next(
                (each["lastTransitionTime"] for each in same if each.get("lastTransitionTime")), now()
            )


def _conditions(conditions: list[Json], field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    types = [each["type"] for each in conditions]
    for index, condition in enumerate(conditions):
        type_, status = condition["type"], condition.get("status", "")
        if not type_:
            problems.append(required(f"{field}[{index}].type"))
        allowed = ("True",) if type_ in _FINAL else ("False", "True", "Unknown")
        if not status:
            problems.append(required(f"{field}[{index}].status"))
        elif status not in allowed:
            problems.append(not_supported(f"{field}[{index}].status", status, allowed))
        if type_ in _DECISIONS and (set(_DECISIONS) - {type_}) & set(types[:index]):
            problems.append(invalid(field, type_, "Approved and Denied conditions are mutually exclusive"))
        if type_ in types[:index]:
            problems.append(duplicate(f"{field}[{index}].type", type_))
    return problems


def _request(encoded: str | None, field: str) -> list[StatusCause]:
    """The request itself: one in PEM, signed with its own key."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.x509 import load_pem_x509_csr

    block = _PEM.search(base64.b64decode(encoded or ""))
    if block is None or block[1] != b"CERTIFICATE REQUEST":
        return [invalid(field, encoded, "PEM block type must be CERTIFICATE REQUEST")]
    try:
        valid = load_pem_x509_csr(block[0]).is_signature_valid
    except (ValueError, UnsupportedAlgorithm, InvalidSignature) as error:
        return [invalid(field, encoded, f"asn1: {error}")]
    return [] if valid else [invalid(field, encoded, "x509: signature is not valid")]


def _certificate(encoded: str) -> list[StatusCause]:
    from cryptography.x509 import load_pem_x509_certificate

    if not encoded:
        return []
    why, blocks = "", list(_PEM.finditer(base64.b64decode(encoded)))
    if not blocks:
        why = "must contain at least one CERTIFICATE PEM block"
    for block in blocks:
        if block[1] != b"CERTIFICATE":
            why = f'only CERTIFICATE PEM blocks are allowed, found "{block[1].decode()}"'
            break
        try:
            load_pem_x509_certificate(block[0])
        except ValueError as error:
            why = f"asn1: {error}"
            break
    return [invalid("status.certificate", "<certificate data>", why)] if why else []


def _signer(name: str, field: str) -> list[StatusCause]:
    if name == _LEGACY:
        return [invalid(field, name, "the legacy signerName is not allowed via this API version")]
    if not name:
        return [required(field)]
    domain, *rest = name.split("/")
    if len(rest) != 1:
        return [invalid(field, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")]
    problems = [too_long(field, _DOMAIN_MAX)] if len(domain) > _DOMAIN_MAX else []
    labels = domain.split(".")
    problems += _first_bad(field, domain, [(each, dns_label(each)) for each in labels])
    if len(labels) == 1:
        problems.append(invalid(field, domain, "should be a domain with at least two segments separated by dots"))
    return problems + _first_bad(field, rest[0], [(each, dns_subdomain(each)) for each in rest[0].split(".")])


def _first_bad(field: str, value: str, labels: list[tuple[str, list[str]]]) -> list[StatusCause]:
    for label, problems in labels:
        if problems:
            return [invalid(field, value, f'validating label "{label}": {why}') for why in problems]
    return []


def _decided(obj: Json) -> str:
    types = {each["type"] for each in path(obj, "status", "conditions") or ()}
    words = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    words += ["Failed"] if "Failed" in types else []
    return ",".join(words + (["Issued"] if path(obj, "status", "certificate") else []))


def _duration(obj: Json) -> str:
    seconds = path(obj, "spec", "expirationSeconds")
    return "<none>" if seconds is None else duration(seconds)


def kinds() -> list[Kind]:
    """The kinds of this family."""
    columns = (
        NAME,
        AGE,
        text("SignerName", at("spec", "signerName", default="<none>")),
        text("Requestor", at("spec", "username")),
        text("RequestedDuration", _duration),
        text("Condition", _decided),
    )
    return [
        kind(
            f"{GROUP}/v1",
            "certificatesigningrequests",
            "CertificateSigningRequest",
            RequestStrategy(),
            columns,
            namespaced=False,
            short="csr",
            subresources="status approval",
            selectable="spec.signerName",
        )
    ]
