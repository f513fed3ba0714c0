"""The command line and the environment of a server on a Host, from its spec. Pure.

The runtime gives the command line; the user's arguments come last and win. The user's command, arguments and variables
may have placeholders: ``{model}``, ``{alias}``, ``{host}`` and ``{port}``, or, as in a pod, ``$(MODEL_PATH)``,
``$(MODEL_NAME)``, ``$(HOST)`` and ``$(PORT)``. These are also in its environment.
"""

from dataclasses import replace

from msgspec import structs

from pilotage.serving.runtimes import RUNTIMES, HostLaunch


def command_line(launch: HostLaunch) -> list[str]:
    """The program and its arguments. Only the user's own words have placeholders: a path may look like one."""
    given = {name: [_filled(word, launch) for word in getattr(launch.runtime, name)] for name in ("command", "args")}
    return RUNTIMES[launch.runtime.name].on_host(replace(launch, runtime=structs.replace(launch.runtime, **given)))


def variables(launch: HostLaunch) -> dict[str, str]:
    """Variables of the environment of the server."""
    facts = {"MODEL_PATH": launch.model, "MODEL_NAME": launch.alias, "HOST": launch.host, "PORT": str(launch.port)}
    return facts | {each.name: _filled(each.value, launch) for each in launch.runtime.env}


def _filled(word: str, launch: HostLaunch) -> str:
    for names, value in (
        (("{model}", "$(MODEL_PATH)"), launch.model),
        (("{alias}", "$(MODEL_NAME)"), launch.alias),
        (("{host}", "$(HOST)"), launch.host),
        (("{port}", "$(PORT)"), str(launch.port)),
    ):
        for name in names:
            word = word.replace(name, value)
    return word
