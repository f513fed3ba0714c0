"""Requests for certificates: who may not be asked for, who approves, who signs."""

from __future__ import annotations

import base64
from typing import Any

from tests.contract.case import Theme
from tests.contract.cases.access import grant, rule
from tests.contract.kit import Kit
from tests.contract.objects import obj

theme = Theme("csr")

API = "certificates.k8s.io/v1"
REQUESTS = f"/{API}/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"
MALLORY = b"""\
-----BEGIN CERTIFICATE REQUEST-----
MIHmMIGNAgEAMCsxFzAVBgNVBAoMDnN5c3RlbTptYXN0ZXJzMRAwDgYDVQQDDAdt
YWxsb3J5MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEcsS1np+dpRUnAzL4jlQF
7vmtFv2ayZpUWq2tSAwdUc+zarjDYj9KNUYStFC6YyBVfXoRYpjQqSGQICoe/8yU
e6AAMAoGCCqGSM49BAMCA0gAMEUCIQDs3+iwK0cpJ32JhikCndranwK64NIP6emO
yLiox4fKsQIgAUtywV3cfMgMpoC7pms4pD/DYRJEVJIE6/mpnYaZPcg=
-----END CERTIFICATE REQUEST-----
"""
"""Request of the group system:masters."""
MALLORY_AND_READERS = b"""\
-----BEGIN CERTIFICATE REQUEST-----
MIH4MIGfAgEAMD0xEDAOBgNVBAoMB3JlYWRlcnMxFzAVBgNVBAoMDnN5c3RlbTpt
YXN0ZXJzMRAwDgYDVQQDDAdtYWxsb3J5MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD
QgAEcsS1np+dpRUnAzL4jlQF7vmtFv2ayZpUWq2tSAwdUc+zarjDYj9KNUYStFC6
YyBVfXoRYpjQqSGQICoe/8yUe6AAMAoGCCqGSM49BAMCA0gAMEUCIFcDbsxH+Yit
iYNOjv++jL9eh6vewWaCbftFLcGGJnMvAiEAvnR9484qxFEUO/n2VSYi1mArSS3l
52IafkkAJ9ASrJA=
-----END CERTIFICATE REQUEST-----
"""
"""Request of two groups, one of which is system:masters."""
ANN = b"""\
-----BEGIN CERTIFICATE REQUEST-----
MIHaMIGCAgEAMCAxEDAOBgNVBAoMB3JlYWRlcnMxDDAKBgNVBAMMA2FubjBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABHLEtZ6fnaUVJwMy+I5UBe75rRb9msmaVFqt
rUgMHVHPs2q4w2I/SjVGErRQumMgVX16EWKY0KkhkCAqHv/MlHugADAKBggqhkjO
PQQDAgNHADBEAiAmU+4JGF7l8Cqg5321jQP6q+iGtojmDmCDPOmzKVlfdwIgeK3k
JXW+TEjkfHZeWa1ATJCYvK0DJIzS3lIfEmnc3i4=
-----END CERTIFICATE REQUEST-----
"""
"""Request of the group readers."""


def request(name: str, pem: bytes, signer: str = CLIENT, **spec: Any) -> Any:
    spec = {"request": base64.b64encode(pem).decode(), "signerName": signer, "usages": ["client auth"], **spec}
    return obj(API, "CertificateSigningRequest", name, spec=spec)


def without_request(body: Any) -> Any:
    """Object without the request itself, which is long and constant; `extra` tells the certificate of the requester."""
    if "spec" not in body:
        return body
    return body | {"spec": {name: value for name, value in body["spec"].items() if name not in ("request", "extra")}}


def decision(type_: str) -> Any:
    return {"status": {"conditions": [{"type": type_, "status": "True", "reason": "x", "message": "y"}]}}


theme.creates("masters", REQUESTS, request("csr-masters", MALLORY))
theme.creates("masters among others", REQUESTS, request("csr-masters-among-others", MALLORY_AND_READERS))
theme.creates("masters and invalid", REQUESTS, request("csr-masters-invalid", MALLORY, usages=["magic"]))
theme.creates("masters in a dry run", REQUESTS, request("csr-masters-dry", MALLORY), dryRun="All")


@theme.case()
async def those_that_are_taken(kit: Kit) -> None:
    kit = kit.picking(without_request)
    await kit.create(REQUESTS, request("csr-ann", ANN))
    await kit.create(REQUESTS, request("csr-elsewhere", MALLORY, "example.com/signer"))


@theme.case()
async def approving_needs_the_right_for_the_signer(kit: Kit) -> None:
    kit = kit.picking(without_request)
    await kit.quiet.create(REQUESTS, request("csr-approve", ANN))
    signers = rule("certificates.k8s.io", "signers", "approve", resourceNames=["example.com/signer"])
    requests = rule("certificates.k8s.io", "certificatesigningrequests/approval", "update patch")
    await grant(kit, "ivy", requests, signers, cluster=True)
    await kit.as_user("ivy").patch(REQUESTS, "csr-approve", decision("Approved"), "approval")
    await kit.quiet.create(REQUESTS, request("csr-approve-other", ANN, "example.com/signer"))
    await kit.as_user("ivy").patch(REQUESTS, "csr-approve-other", decision("Approved"), "approval")


@theme.case()
async def signing_needs_the_right_for_the_signer(kit: Kit) -> None:
    """The right is needed also for a condition that is neither a decision nor a failure."""
    kit = kit.picking(without_request)
    await kit.quiet.create(REQUESTS, request("csr-sign", ANN))
    requests = rule("certificates.k8s.io", "certificatesigningrequests/status", "update patch")
    signers = rule("certificates.k8s.io", "signers", "sign", resourceNames=["example.com/*"])
    await grant(kit, "jon", requests, signers, cluster=True)
    jon = kit.as_user("jon")
    await jon.patch(REQUESTS, "csr-sign", decision("Failed"), "status")
    await jon.patch(REQUESTS, "csr-sign", decision("Noted"), "status")
    await jon.patch(REQUESTS, "csr-sign", {"metadata": {"labels": {"a": "b"}}}, "status")
    await kit.quiet.create(REQUESTS, request("csr-sign-other", ANN, "example.com/signer"))
    await jon.patch(REQUESTS, "csr-sign-other", decision("Noted"), "status")
