"""What an agent may do. The rules stand with those of the other programs that are installed: see `api.rbac_rules`."""

from pilotage.api.rbac_rules import AGENT as AGENT_RULES
from pilotage.api.rbac_rules import AGENT_LEASES as AGENT_AT_HOME
from pilotage.api.rbac_rules import AGENT_READ_SECRETS

__all__ = ["AGENT_AT_HOME", "AGENT_READ_SECRETS", "AGENT_RULES"]
