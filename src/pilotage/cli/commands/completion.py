"""``pilotage completion``: the script that lets a shell complete commands, options and names."""

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that lets a shell complete commands, options and names.

    \b
    source <(pilotage completion bash)                        bash, in ~/.bashrc
    source <(pilotage completion zsh)                         zsh, in ~/.zshrc, after compinit
    pilotage completion fish | source                         fish, in ~/.config/fish/config.fish

    Names of endpoints, Experiments, Models, Hosts and namespaces come from the cluster that -n, --context and
    --kubeconfig choose; if it does not answer within 2 seconds, none are offered.

    Exit codes: 0 printed, 2 bad usage.
    """
    from click.shell_completion import get_completion_class

    from pilotage.cli import pilotage

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(pilotage, {}, "pilotage", "_PILOTAGE_COMPLETE").source(), nl=False)
