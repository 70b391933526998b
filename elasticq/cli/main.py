"""The entry of the command line: it parses the arguments and calls the package that does the work.

Each command imports only the packages that it needs. exits.py lists the exit statuses.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

from elasticq.cli.bench import add_bench
from elasticq.cli.cluster import add_cluster
from elasticq.cli.completion import add_completion
from elasticq.cli.data import add_commands
from elasticq.cli.exits import EXIT_INTERRUPTED, fail, refuse
from elasticq.cli.follow_master import add_follow_master
from elasticq.cli.groups import add_groups
from elasticq.cli.parser import Parser
from elasticq.cli.queues import add_queues
from elasticq.cli.server import add_config, add_server
from elasticq.cli.top import add_top
from elasticq.cli.topics import add_topics

HEALTH_TIMEOUT_S: Final = 5
DEFAULT_URL: Final = "http://127.0.0.1:9324"
_OF_THE_PROGRAM: Final = ("-h", "--help", "--version")
"""The options of the program. Without a command, all other options are those of ``server``."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. argv: without the program's name. No command means ``server``."""
    arguments = _without_java(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["sim"]:
        from elasticq.sim.cli import main as simulate

        return simulate(arguments[1:])
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in _OF_THE_PROGRAM):
        arguments.insert(0, "server")
    options = _parser().parse_args(arguments)
    run: Any = options.run
    try:
        return int(run(options))
    except KeyboardInterrupt:  # the command does not handle Ctrl-C here, such as at a prompt
        print(file=sys.stderr)
        return EXIT_INTERRUPTED


def _without_java(argv: Sequence[str]) -> list[str]:
    """Drop the arguments that ElasticMQ's users pass to java, and print a note on each."""
    arguments: list[str] = []
    given = iter(argv)
    for argument in given:
        if argument == "-jar":
            print(f"elasticq: -jar {next(given, '')} is not needed", file=sys.stderr)
        elif argument.startswith(("-Xm", "-Xs", "-XX:")):
            print(f"elasticq: {argument} is an option of java and has no effect", file=sys.stderr)
        else:
            arguments.append(argument)
    return arguments


def _parser() -> argparse.ArgumentParser:
    from elasticq import BUILD, __version__

    parser: argparse.ArgumentParser = Parser(
        prog="elasticq",
        description="A message server that speaks SQS.",
        formatter_class=argparse.RawDescriptionHelpFormatter,  # the others would break the line of --version
    )
    parser.add_argument("--version", action="version", version=f"elasticq {__version__}, {BUILD}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_server(commands.add_parser("server", help="serve SQS (the default command)"))
    health = commands.add_parser("health", help="exit 0 if the server at URL is alive, else 1")
    health.add_argument("url", nargs="?", default=DEFAULT_URL, metavar="URL")
    health.set_defaults(run=_health)
    add_config(commands.add_parser("config", help="check settings"))
    add_queues(
        commands.add_parser("queues", help="list and change queues; send, purge, redrive, export and import messages")
    )
    add_topics(commands.add_parser("topics", help="list and change topics, subscribe, publish"))
    add_groups(commands.add_parser("groups", help="list and change consumer groups, move their queues"))
    add_cluster(commands.add_parser("cluster", help="show and change a cluster, through its admin ports"))
    add_bench(commands.add_parser("bench", help="measure any SQS endpoint: send, receive, show rates and latencies"))
    add_top(commands.add_parser("top", help="show members and queues live in the terminal"))
    add_commands(commands)
    add_follow_master(commands.add_parser("follow-master", help="label this Kubernetes pod while it is the master"))
    add_completion(commands.add_parser("completion", help="print a script that completes commands in a shell"), _parser)
    commands.add_parser("sim", help="run seeds of the simulator (elasticq sim --help)")
    return parser


def _health(options: argparse.Namespace) -> int:
    from elasticq.cli.ask import BadUrl, Unreachable, ask

    try:
        status = ask(options.url, "GET", "/health", HEALTH_TIMEOUT_S).status
    except BadUrl as error:
        return refuse(str(error))
    except Unreachable as error:
        return fail(str(error))
    print("OK" if status == 200 else f"HTTP {status}")
    return 0 if status == 200 else 1
