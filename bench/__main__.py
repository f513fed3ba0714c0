"""`python -m bench`: run the benchmarks and print what they found."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from bench import gateway, harbor, lifecycle, lists, models, patch, sim, startup, steadiness, watch
from bench.figures import Section
from bench.progress import say
from bench.run import FULL, QUICK, Run, Size
from bench.stock import Stock
from controlplane import Cluster, NoControlPlane, StartError

BENCHMARKS: dict[str, Callable[[Run], Section]] = {
    "watch": watch.run,
    "list": lists.run,
    "patch": patch.run,
    "lifecycle": lifecycle.run,
    "startup": startup.run,
    "harbor": harbor.run,
    "sim": sim.run,
    "models": models.run,
    "gateway": gateway.run,
}
PACKAGES = ("aiohttp", "msgspec", "kubernetes", "kubernetes_asyncio", "lightkube", "kopf")
CLUSTER_FLAGS = {"etcd": ["--quota-backend-bytes=8589934592"]}  # 100,000 objects fit into 8 GB


def main() -> None:
    """The command."""
    args = _parse()
    size = _size(args)
    say("starting etcd and kube-apiserver")
    with Cluster(components=(), flags=CLUSTER_FLAGS) as cluster:
        facts = _facts(cluster, size)
        run = Run(cluster, Stock(cluster), size)
        if args.output == "text":
            print("\n".join(f"{name}: {value}" for name, value in facts.items()), flush=True)
        sections = []
        for name, benchmark in BENCHMARKS.items():
            if name in args.benchmarks or not args.benchmarks:
                sections.append(benchmark(run))
                if args.output == "text":
                    print(f"\n{sections[-1]}", flush=True)
    facts["steadiness"] = steadiness.verdict()
    if args.output == "text":
        print(f"\nsteadiness: {facts['steadiness']}")
    as_json = json.dumps({"facts": facts, "sections": [section.as_data() for section in sections]}, indent=2)
    if args.output == "json":
        print(as_json)
    if args.save is not None:
        args.save.write_text(as_json + "\n")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measure Pilotage beside other clients and kopf, on one real API server. Progress goes to stderr.",
    )
    parser.add_argument("benchmarks", nargs="*", metavar="BENCHMARK", help=f"any of {', '.join(BENCHMARKS)}; else all")
    parser.add_argument("--quick", action="store_true", help="fewer objects: minutes instead of a quarter of an hour")
    parser.add_argument("--objects", type=int, metavar="N", help="the most objects to list (default: 100,000)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="what to print")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the figures as JSON to a file, too")
    args = parser.parse_args()
    if unknown := set(args.benchmarks) - set(BENCHMARKS):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    return args


def _size(args: argparse.Namespace) -> Size:
    size = QUICK if args.quick else FULL
    if args.objects is None:
        return size
    return replace(size, growth=(*(each for each in size.growth if each < args.objects), args.objects))


def _facts(cluster: Cluster, size: Size) -> dict[str, str]:
    """Facts that the figures depend on: machine, versions, sizes."""
    return {
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        "python": platform.python_version(),
        "kube-apiserver": cluster.request("GET", "/version")["gitVersion"],
        **{package: metadata.version(package) for package in PACKAGES},
        "figures": f"medians of {size.rounds} rounds in which all take turns; the largest list, the lifecycle: one",
        "garbage collector": "Python's defaults, but in the lifecycle, where each operator runs as it would",
    }


if __name__ == "__main__":
    try:
        main()
    except (NoControlPlane, StartError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
