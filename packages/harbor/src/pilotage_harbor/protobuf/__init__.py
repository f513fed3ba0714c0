"""Bodies in Kubernetes' protobuf, which typed Go clients (kubectl create, for one) prefer for built-in kinds.

Only reading: what such a client sends is turned into the JSON that it means. Answers are always JSON, which all of them
accept. The field numbers stand in `messages.txt`, made by `make` from the .proto files of the Go modules.
"""

from __future__ import annotations

from pilotage_harbor.protobuf.decode import MEDIA_TYPE, BadMessage, from_protobuf_untrusted

__all__ = ["MEDIA_TYPE", "BadMessage", "from_protobuf_untrusted"]
