"""The records of claims as the status of a GatewayRoute has them. Pure."""

from collections.abc import Mapping

from pilotage.api.gateway_route import StoredGatewayRoute
from pilotage.gateway.claims import ClaimedName, ClaimRecord
from pilotage.kube import Json, Object


def read_records(obj: Object) -> dict[ClaimedName, ClaimRecord]:
    """Those of one route. Its schema has seen to it that they are such."""
    status = obj.decode_as(StoredGatewayRoute).status
    return {ClaimedName(each.kind, each.name, each.path): ClaimRecord(each.turn, each.held) for each in status.claims}


def written_records(records: Mapping[ClaimedName, ClaimRecord]) -> list[Json]:
    """Records in their wire format, in a fixed order."""
    return [
        {"kind": name.kind, "name": name.name, "path": name.path, "turn": record.turn, "held": record.held}
        for name, record in sorted(records.items())
    ]
