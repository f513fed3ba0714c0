"""The example in docs/endpoints.md is what is made, and its table has the images that there are."""

import re
from pathlib import Path

import yaml

from pilotage.serving import desired_objects
from pilotage.serving.parts import ResolvedModel
from tests.serving.cases import ALL, GGUF, RUNTIMES, subject

PAGE = (Path(__file__).parents[2] / "docs" / "endpoints.md").read_text()


def test_the_example_is_what_is_made():
    endpoint, containers = (yaml.safe_load(each) for each in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[-2:])
    made = subject(endpoint["spec"], endpoint["metadata"]["name"])
    parts = desired_objects(made, 1, ResolvedModel("qwen-small", "hf://Qwen/Qwen3-0.6B"), ALL)
    [pod] = [each.body["spec"]["template"]["spec"] for each in parts if each.resource.kind == "Deployment"]
    assert pod["containers"] == containers
    assert f"is {pod['terminationGracePeriodSeconds']}: 5, 60 and 15" in PAGE


def test_the_table_has_the_images_and_ports():
    for runtime in RUNTIMES:
        made = subject({"runtime": {"name": runtime, "image": None}})
        [pod] = [
            each.body["spec"]["template"]["spec"]
            for each in desired_objects(made, 1, GGUF, ALL)
            if each.resource.kind == "Deployment"
        ]
        [row] = [line for line in PAGE.splitlines() if line.startswith(f"| `{runtime}` |")]
        server = pod["containers"][0]
        assert server["image"] in row
        assert f"| {server['ports'][0]['containerPort']} |" in row
