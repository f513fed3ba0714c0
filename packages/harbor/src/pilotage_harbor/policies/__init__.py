"""ValidatingAdmissionPolicies: CEL of the cluster's administrator that decides about writes. No I/O, no waiting."""
