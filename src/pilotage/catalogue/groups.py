"""API groups: which come with Kubernetes, and which are a vendor's or a user's own."""


def is_built_in(group: str) -> bool:
    """Whether the kinds of a group come with Kubernetes: their owners delete no parts of their own in any order."""
    return "." not in group or (group.endswith(".k8s.io") and not group.endswith(".x-k8s.io"))


def is_custom(group: str) -> bool:
    """Whether a group can be a user's or a vendor's own: no group of Kubernetes or its projects."""
    return "." in group and not group.endswith(".k8s.io")
