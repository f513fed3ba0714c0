"""Cost of endpoints to their operator, from creation to deletion: `python -m bench.endpoints [N]`.

The same ServingEndpoints are made ready on kwok and deleted again, first under `pilotage operator`, then under an
operator on kopf that makes the very same objects (`bench.operators.kopf_endpoints`). `user` is who creates and deletes
them, `life` measures the operator meanwhile, from outside.
"""
