"""How it is said that a cluster cannot be found, or that we cannot prove who we are.

Every message has one shape: `<file>: <field>: what is wrong. What to do.` No message ever holds a secret.
"""

from __future__ import annotations


class ConfigError(Exception):
    """The configuration is wrong or missing. It stays so until somebody changes it."""


class CredentialsError(ConfigError):
    """The configuration is sound, yet no credentials could be had just now (an exec plugin failed): later may work."""
