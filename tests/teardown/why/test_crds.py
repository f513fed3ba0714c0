"""Definitions that wait for their instances, on the real API server."""

import secrets

from pilotage.kube import Object
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.model import StuckVerdict
from pilotage.teardown.diagnosis.why.render import remedies_of
from tests.support import kinds
from tests.support.waiting import until
from tests.teardown.why.staging import Stage, name_of, root_codes, the


async def test_a_definition_waits_for_an_instance_with_a_finalizer(stage: Stage) -> None:
    gadgets = kinds.widgets()
    async with kinds.served(stage.client, gadgets) as definition:
        finalizer = f"x{secrets.token_hex(4)}.test/hold"
        instance = await stage.make(gadgets, {"metadata": {"name": "last"}}, finalizers=[finalizer])
        await stage.delete(kinds.CRDS, definition)
        await until(stage.client, gadgets, instance.key, _terminating)
        explanation = await stage.why(kinds.CRDS, definition)
        assert f"waits for widget/last -n {stage.namespace}" in the(explanation, CauseCode.CRD_INSTANCES).text
        assert root_codes(explanation) == {CauseCode.FINALIZER_UNCLAIMED}
        assert name_of(explanation.roots[0].subject).name == "last"
        assert explanation.verdict is StuckVerdict.STUCK
        assert (remedies_of(explanation)[-1].code, remedies_of(explanation)[-1].detail) == (
            "strip-finalizer",
            finalizer,
        )
        about_it = await stage.why(gadgets, instance)
        note = the(about_it, CauseCode.CRD_TERMINATING)
        assert f"its definition {definition.meta.name} is being deleted" in note.text
        await stage.clear()


async def test_a_definition_with_a_finalizer_of_somebody_else(stage: Stage) -> None:
    bystander = await stage.make(kinds.DEPLOYMENTS, kinds.deployment("bystander", replicas=0))
    assert bystander.meta.namespace.startswith("test-")  # a word that the finalizer has, too
    definition = await stage.make(kinds.CRDS, kinds.definition(kinds.widgets()), finalizers=["hold.test/crd"])
    await stage.delete(kinds.CRDS, definition)
    explanation = await stage.why(kinds.CRDS, definition)
    assert CauseCode.FINALIZER_UNCLAIMED in root_codes(explanation)
    assert remedies_of(explanation)[-1].detail == "hold.test/crd"


def _terminating(obj: Object | None) -> bool:
    return obj is not None and obj.meta.terminating
