"""Lists in chunks: limit, continue, remainingItemCount, tokens that are wrong or old."""

from __future__ import annotations

import base64
import json

from tests.contract.case import Theme
from tests.contract.kit import METADATA_LIST, Kit
from tests.contract.objects import secret

theme = Theme("chunks")


async def five(kit: Kit) -> None:
    for name in "abcde":
        body = secret(name, {}) | {"metadata": {"name": name, "labels": {"odd": str(name in "ace").lower()}}}
        await kit.quiet.create("secrets", body)


def names(kit: Kit) -> Kit:
    def pick(body: dict) -> object:  # type: ignore[type-arg]
        if "items" not in body:
            return body
        return {
            "metadata": body["metadata"],
            "names": [each["metadata"]["name"] for each in body["items"]],
            "items": [],
        }

    return kit.picking(pick)


def token(**fields: object) -> str:
    raw = json.dumps({"v": "meta.k8s.io/v1"} | fields).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@theme.case()
async def pages_to_the_end(kit: Kit) -> None:
    await five(kit)
    page = await names(kit).list("secrets", limit=2)
    while page.body["metadata"].get("continue"):
        page = await names(kit).list("secrets", limit=2, **{"continue": page.body["metadata"]["continue"]})


@theme.case()
async def rest_without_a_limit(kit: Kit) -> None:
    await five(kit)
    page = await names(kit).list("secrets", limit=3)
    await names(kit).list("secrets", **{"continue": page.body["metadata"]["continue"]})


@theme.case()
async def limit_of_all(kit: Kit) -> None:
    await five(kit)
    await names(kit).list("secrets", limit=5)


@theme.case()
async def limit_of_zero(kit: Kit) -> None:
    await five(kit)
    await names(kit).list("secrets", limit=0)


@theme.case()
async def limit_below_zero(kit: Kit) -> None:
    await five(kit)
    await names(kit).list("secrets", limit=-1)


@theme.case()
async def with_a_selector_the_rest_is_not_counted(kit: Kit) -> None:
    await five(kit)
    page = await names(kit).list("secrets", limit=2, labelSelector="odd=true")
    await names(kit).list(
        "secrets", limit=2, labelSelector="odd=true", **{"continue": page.body["metadata"]["continue"]}
    )


@theme.case()
async def pages_are_of_one_version(kit: Kit) -> None:
    await five(kit)
    page = await names(kit).list("secrets", limit=2)
    await kit.quiet.delete("secrets", "d")
    await kit.quiet.create("secrets", secret("f", {}))
    rest = await names(kit).list("secrets", **{"continue": page.body["metadata"]["continue"]})
    kit.note("same version", rest.rv == page.rv)


@theme.case()
async def continue_with_a_version(kit: Kit) -> None:
    await five(kit)
    page = await names(kit).list("secrets", limit=2)
    await names(kit).list("secrets", resourceVersion=page.rv, **{"continue": page.body["metadata"]["continue"]})


@theme.case()
async def continue_with_version_zero(kit: Kit) -> None:
    await five(kit)
    page = await names(kit).list("secrets", limit=2)
    await names(kit).list("secrets", resourceVersion="0", **{"continue": page.body["metadata"]["continue"]})


@theme.case()
async def first_page_of_an_exact_version(kit: Kit) -> None:
    await five(kit)
    version = (await kit.quiet.list("secrets")).rv
    await kit.quiet.delete("secrets", "a")
    await names(kit).list("secrets", limit=2, resourceVersion=version, resourceVersionMatch="Exact")


@theme.case()
async def metadata_in_pages(kit: Kit) -> None:
    await five(kit)
    await names(kit).accepting(METADATA_LIST).list("secrets", limit=2)


for name, forged in {
    "is no base64": "%25%25",
    "is no json": base64.urlsafe_b64encode(b"nonsense").decode(),
    "of another format": token(v="v9", rv=1, start="a"),
    "without a version": token(start="a"),
    "without a start": token(rv=5),
    "out of the prefix": token(rv=5, start="../../etc"),
    "with a negative version": token(rv=-5, start="a"),
}.items():
    theme.asks(f"token {name}", "GET", f"/api/v1/namespaces/{{ns}}/secrets?limit=2&continue={forged}")
