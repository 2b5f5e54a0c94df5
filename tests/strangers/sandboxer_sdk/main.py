"""Runs the scenarios of one face of sandboxer-sdk: `main.py sync` or `main.py async`."""

import sys

import account
import agents
import commands
import deliveries
import environments
import errors
import faults
import lifecycle
import scripted_faults
import snapshots
import ways_in
from case import Case, take
from stranger import run, scenarios_of

# The last of them move the server's clock.
MODULES = [account, environments, lifecycle, commands, ways_in, snapshots, errors, deliveries, faults, scripted_faults, agents]


def main():
    is_async = sys.argv[1] == "async"
    take(is_async)
    case = Case(is_async)
    wanted = sys.argv[2:]
    scenarios = [(one, case) for one in scenarios_of(MODULES) if not wanted or one.__name__ in wanted]
    run(scenarios, "sandboxer", is_async)


main()
