"""`pilotage operator`, as it is: `python -m bench.operators.pilotage_endpoints KUBECONFIG NAMESPACE`."""

import sys
import tempfile

from bench.meter import end_with_parent
from bench.operators import FETCH_IMAGE
from pilotage.cli import main

kubeconfig, _ = sys.argv[1:]
end_with_parent()
with tempfile.TemporaryDirectory(prefix="pilotage-bench-") as folder:
    options = {
        "--kubeconfig": kubeconfig,
        "--metrics-address": "",
        "--fetch-image": FETCH_IMAGE,
        "--cache-root": folder,
        "--log-level": "warning",
    }
    sys.argv[1:] = ["operator", "--no-leader-election", *(word for option in options.items() for word in option)]
    main()
