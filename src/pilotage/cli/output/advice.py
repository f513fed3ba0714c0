"""Advice on a request that is not carried out as it stands, in the options of the command line."""

from pilotage.catalogue.kind import Keep
from pilotage.teardown.session.request import RequestProblem

_ADVICE: dict[str, str] = {
    RequestProblem.NOTHING_NAMED: "Say what is meant: KIND/NAME, -f FILE, -l SELECTOR, or -n NAMESPACE --all.",
    RequestProblem.NAMES_AND_SELECTOR: "Either give kinds with -l, or names without it.",
    RequestProblem.NAMES_AND_FILES: "Leave out one; why, tree and leaks read a dump with --dump.",
    RequestProblem.MIXED: "--all and -l stand alone.",
    RequestProblem.NAMESPACE_MISSING: "--all needs -n NAMESPACE: it would be too easy to mean another one.",
    RequestProblem.KEEPS_UNKNOWN: f"Say --keep with {', '.join(Keep)}, or KIND/NAME.",
    RequestProblem.KEEPS_ABSENT: "Correct --keep.",
    RequestProblem.KEEPS_BY_SPEC: "Change it there, and leave out --keep and --drain.",
    RequestProblem.NAME_MISSING: "Write KIND/NAME, or choose with -l SELECTOR.",
    RequestProblem.NAME_GENERATED: "Use its name, or a selector (-l).",
    RequestProblem.NAMESPACE_DIFFERS: "Leave out -n, or correct it.",
    RequestProblem.RECEIPT_UNWRITABLE: "Say where it goes with --receipt.",
    RequestProblem.RECEIPT_FOREIGN: "Choose that cluster with --kubeconfig or --context.",
    RequestProblem.NOT_ADOPTED: "It is taken down from here with --adopt.",
}


def with_advice(sentence: str, problem: str = "") -> str:
    """A sentence of a session; with the option that helps, where it is about a known problem."""
    return f"{sentence} {_ADVICE.get(problem or sentence, '')}".rstrip()
