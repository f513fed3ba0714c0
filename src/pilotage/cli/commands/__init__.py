"""The commands: a module for each, called like the command. It parses, calls a layer below, and prints."""
