"""`python -m bench.teardown`: measure deletions and questions, and print what was found."""

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from bench import steadiness
from bench.progress import say
from bench.teardown import deletions, look
from bench.teardown.contestants import CONTESTANTS
from controlplane import Cluster, NoControlPlane, StartError

PARTS = ("delete", "look")
COMPONENTS = ("kube-controller-manager", "kwok")
FLAGS = {
    "etcd": ["--quota-backend-bytes=8589934592"],
    # Its default of 20 requests a second would be all that is measured.
    "kube-controller-manager": [
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--horizontal-pod-autoscaler-sync-period=15s",  # as by default; ours, for tests, is shorter
    ],
}


def main() -> None:
    """The command."""
    args = _parse()
    parts = args.parts or PARTS
    outcomes: dict[str, deletions.Outcome | look.Outcome] = {}
    say("starting the control plane")
    with Cluster(components=COMPONENTS, flags=FLAGS) as cluster:
        facts = _facts(cluster)
        print("\n".join(f"{name}: {value}" for name, value in facts.items()), flush=True)
        if "delete" in parts:
            outcomes["delete"] = deletions.run(cluster, args.n, args.only, slow=args.slow)
            print(f"\n{outcomes['delete']}", flush=True)
        if "look" in parts:
            outcomes["look"] = look.run(cluster, args.objects)
            print(f"\n{outcomes['look']}", flush=True)
    facts["steadiness"] = steadiness.verdict()
    facts["load at the end"] = _load()
    print(f"\nsteadiness: {facts['steadiness']}\nload at the end: {facts['load at the end']}")
    if args.save is not None:
        data = {"facts": facts} | {name: outcome.as_data() for name, outcome in outcomes.items()}
        args.save.write_text(json.dumps(data, indent=2) + "\n")


def _parse() -> argparse.Namespace:
    named = [each.name for each in CONTESTANTS]
    parser = argparse.ArgumentParser(
        prog="python -m bench.teardown",
        description="Measure teardowns on one real control plane with kwok. Progress goes to stderr.",
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; else both")
    parser.add_argument("--n", type=_numbers, default=[1, 100], metavar="1,100,1000", help="endpoints (default: 1,100)")
    parser.add_argument("--only", type=_words, default=[], metavar="NAMES", help=f"some of: {','.join(named)}")
    parser.add_argument("--slow", action="store_true", help="let kubectl and helm delete more than 100, too")
    parser.add_argument(
        "--objects", type=int, default=5_000, help="in the namespace that is looked at (default: 5,000)"
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the figures as JSON to a file, too")
    args = parser.parse_args()
    if unknown := set(args.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if unknown := set(args.only) - set(named):
        parser.error(f"nobody called {', '.join(sorted(unknown))}; there are {', '.join(named)}")
    return args


def _numbers(text: str) -> list[int]:
    return sorted(int(word) for word in text.split(","))


def _words(text: str) -> list[str]:
    return text.split(",")


def _facts(cluster: Cluster) -> dict[str, str]:
    """Facts that the figures depend on: machine, versions, sizes."""
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "load at the start": _load(),
        "python": platform.python_version(),
        "kube-apiserver": cluster.request("GET", "/version")["gitVersion"],
        "kube-controller-manager": " ".join(FLAGS["kube-controller-manager"]),
    }


def _load() -> str:
    return ", ".join(f"{each:.1f}" for each in os.getloadavg()) + " (1, 5 and 15 minutes)"


if __name__ == "__main__":
    try:
        main()
    except (NoControlPlane, StartError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
