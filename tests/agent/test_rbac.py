"""Permissions of an agent: exactly those that it uses, no rule too few and none too many."""

from msgspec.structs import replace

from pilotage.api import rbac_rules
from pilotage.api.names import HOSTS
from pilotage.kube import ObjectKey, merge_patch
from pilotage_harbor.access.attributes import attributes_of
from tests.agent.agent_host import python_server
from tests.agent.servers import PLAIN


async def test_every_power_is_used_and_no_other(host):
    used = set()

    def listen(call):
        if call.user.name == "agent":
            said = attributes_of(call.method, call.path, call.query)
            resource = f"{said.resource}/{said.subresource}" if said.subresource else said.resource
            used.add((said.group, resource, said.verb))

    host.world.intercept(listen)
    host.settings = replace(host.settings, labels=("disk=ssd",))
    await host.start()
    await host.serving("chat-1-0", runtime=python_server(PLAIN), drainSeconds=0)
    await host.client.patch(HOSTS, ObjectKey("", host.name), merge_patch({"metadata": {"labels": {"disk": None}}}))
    await host.until(lambda: ("pilotage.dev", "hosts", "patch") in used)
    await host.delete("chat-1-0")
    await host.until(lambda: host.find("chat-1-0") is None)
    await host.place("chat-1-1", model={"secret": "none"})
    await host.until(lambda: host.reason("chat-1-1") == "SecretNotFound")
    await host.stop()
    rules = (*rbac_rules.AGENT, *rbac_rules.AGENT_LEASES, *rbac_rules.AGENT_READ_SECRETS)
    allowed = {(rule.group, resource, verb) for rule in rules for resource in rule.resources for verb in rule.verbs}
    may_fail = {("", "namespaces", "create")}  # where no installation has created it
    needs_time = {("events.k8s.io", "events", "patch")}
    assert used - may_fail - allowed == set()
    assert allowed - used - needs_time == set()
