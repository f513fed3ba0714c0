"""What an agent may do is what it does: no rule too few, and none too many."""

from msgspec.structs import replace

from pilotage.api import rbac_rules
from pilotage.api.names import HOSTS
from pilotage.kube import ObjectKey, merge_patch
from pilotage_harbor.access.attributes import attributes_of
from tests.agent.servers import PLAIN
from tests.agent.town import python_server


async def test_every_power_is_used_and_no_other(town):
    used = set()

    def listen(call):
        if call.user.name == "agent":
            said = attributes_of(call.method, call.path, call.query)
            resource = f"{said.resource}/{said.subresource}" if said.subresource else said.resource
            used.add((said.group, resource, said.verb))

    town.world.intercept(listen)
    town.settings = replace(town.settings, labels=("disk=ssd",))
    await town.start()
    await town.serving("chat-1-0", runtime=python_server(PLAIN), drainSeconds=0)
    await town.client.patch(HOSTS, ObjectKey("", town.host), merge_patch({"metadata": {"labels": {"disk": None}}}))
    await town.until(lambda: ("pilotage.dev", "hosts", "patch") in used)
    await town.delete("chat-1-0")
    await town.until(lambda: town.find("chat-1-0") is None)
    await town.place("chat-1-1", model={"secret": "none"})
    await town.until(lambda: town.reason("chat-1-1") == "SecretNotFound")
    await town.stop()
    rules = (*rbac_rules.AGENT, *rbac_rules.AGENT_LEASES, *rbac_rules.AGENT_READ_SECRETS)
    allowed = {(rule.group, resource, verb) for rule in rules for resource in rule.resources for verb in rule.verbs}
    may_fail = {("", "namespaces", "create")}  # where nobody has installed anything
    needs_time = {("events.k8s.io", "events", "patch")}
    assert used - may_fail - allowed == set()
    assert allowed - used - needs_time == set()
