"""Runs the scenarios of one face of boat-sdk: `main.py plain`, `main.py info` or `main.py unread`."""

import sys

import account
import agents
import commands
import environments
import errors
import faults
import files
import helpers
import lifecycle
import snapshots
import ways_in
from case import Case, take
from stranger import run, scenarios_of

# The last are the helpers, which use the plain methods; some of them move the server's clock.
MODULES = [account, environments, lifecycle, commands, files, ways_in, snapshots, agents, errors, faults, helpers]


def main():
    face = sys.argv[1]
    take(face)
    case = Case(face)
    wanted = sys.argv[2:]
    modules = MODULES if face == "plain" else MODULES[:-1]
    scenarios = [(one, case) for one in scenarios_of(modules) if not wanted or one.__name__ in wanted]
    run(scenarios, "boat_sdk", is_async=False)


main()
