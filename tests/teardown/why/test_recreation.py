"""Names that come back, on the real API server."""

import copy
import secrets

from pilotage.kube import Resource
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.model import Explanation, StuckVerdict
from pilotage.teardown.diagnosis.why.render import remedies_of
from pilotage.teardown.relations import relate
from pilotage.teardown.snapshot.resolve import until_resolved
from tests.support import kinds
from tests.support.waiting import eventually
from tests.teardown.why.staging import Stage, name_of, root_codes, the

MAPS: Resource = kinds.CONFIG_MAPS


async def test_it_was_applied_again_while_it_is_being_deleted(stage: Stage) -> None:
    obj = await stage.make(MAPS, kinds.config_map("again"), finalizers=[f"x{secrets.token_hex(4)}.test/hold"])
    await stage.delete(MAPS, obj)
    applier = copy.copy(stage.client)
    applier.name = "argocd-controller"

    async def applied_later() -> Explanation | None:
        body = kinds.config_map("again", {"n": secrets.token_hex(3)}, namespace=stage.namespace)
        await applier.apply(MAPS, body)  # it succeeds, which is the trap
        explanation = await stage.why(MAPS, obj)
        return explanation if CauseCode.CHANGED_WHILE_TERMINATING in root_codes(explanation) else None

    explanation = await eventually(applied_later)  # times of the API are whole seconds
    note = the(explanation, CauseCode.CHANGED_WHILE_TERMINATING)
    assert note.text.startswith('"argocd-controller" applied it again')
    assert CauseCode.FINALIZER_UNCLAIMED in root_codes(explanation)
    assert remedies_of(explanation)[0].harm == 0


async def test_another_object_has_its_name_by_now(stage: Stage) -> None:
    before = await stage.make(MAPS, kinds.config_map("name"))
    item = (await stage.world()).get(before.meta.uid)
    assert item is not None
    await stage.delete(MAPS, before)
    maker = copy.copy(stage.client)
    maker.name = "kustomize-controller"
    after = await maker.create(MAPS, kinds.config_map("name", {"a": "b"}), namespace=stage.namespace)
    world = await stage.world()
    explanation = await until_resolved(stage.client, world, lambda known: explain(known, relate(known), item))
    assert (explanation.verdict, explanation.headline) == (StuckVerdict.NOT_STUCK, "is gone")
    note = the(explanation, CauseCode.RECREATED)
    assert getattr(note.subject, "uid", None) == after.meta.uid
    assert 'by "kustomize-controller"' in note.text
    assert before.meta.uid in note.evidence[0]


async def test_what_is_gone_is_gone(stage: Stage) -> None:
    before = await stage.make(MAPS, kinds.config_map("name"))
    item = (await stage.world()).get(before.meta.uid)
    assert item is not None
    await stage.delete(MAPS, before)
    world = await stage.world()
    explanation = await until_resolved(stage.client, world, lambda known: explain(known, relate(known), item))
    assert (explanation.verdict, explanation.headline, explanation.causes) == (StuckVerdict.NOT_STUCK, "is gone", ())
    assert name_of(explanation.subject).name == "name"
