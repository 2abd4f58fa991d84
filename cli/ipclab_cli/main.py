# SPDX-License-Identifier: MIT
"""The parser, made of one table of commands; the exit status; what a shell completes, from the same parser."""

import argparse
import os
import sys
from pathlib import Path

from ipclab_cli import commands, screen
from ipclab_cli.http import Client, NotServed, Refusal, Unreachable

SOCKET = "/run/ipclab/ipclabd.sock"
# The exit status of each outcome; ipclab(1) has the same table, and a test compares them.
EXIT_DONE, EXIT_NOT_WHOLE, EXIT_USAGE, EXIT_REFUSED, EXIT_MISSING, EXIT_UNREACHABLE, EXIT_FAILING = range(7)
EXIT_INTERRUPTED = 130
STATUSES = {
    EXIT_DONE: "done; of run, extend, retry and watch: the experiment is done, with all of its runs",
    EXIT_NOT_WHOLE: "of run, extend, retry and watch: the experiment failed or was cancelled, or a run of it failed; "
    "of verify: a bundle is refused",
    EXIT_USAGE: "the command line is wrong, or a file cannot be read or written",
    EXIT_REFUSED: "the daemon refused: a bad spec, a limit, a missing token, a conflict (4xx)",
    EXIT_MISSING: "there is no such experiment, or the daemon is of a version without this (404)",
    EXIT_UNREACHABLE: "no daemon at that address, or its answer broke off",
    EXIT_FAILING: "the daemon cannot do it now, or failed at it (5xx)",
    EXIT_INTERRUPTED: "interrupted; an experiment goes on",
}


def argument(*names, kind=None, **options):
    """`kind` is what a shell completes it with: experiment, preset, baseline, question (a field of /advice) or file."""
    return names, options, kind


def identity(word):
    if word != "last" and not (word.isascii() and word.isdecimal() and int(word) > 0):
        raise argparse.ArgumentTypeError(f"{word} is no experiment: it must be an id, or last")
    return word


def printable(word):
    if not (word and word.isascii() and word.isprintable()):
        raise argparse.ArgumentTypeError("a key is made of printable ASCII characters")
    return word


EXPERIMENT = argument(
    "experiment", type=identity, metavar="ID", kind="experiment", help="the experiment's id; last: the newest"
)
BASELINE = argument("name", metavar="NAME", kind="baseline", help="the baseline's name")
EXPERIMENTS = argument(
    "experiments", nargs="+", type=identity, metavar="ID", kind="experiment", help="their ids; last: the newest"
)
KEY = argument(
    "--key",
    type=printable,
    metavar="KEY",
    help="Idempotency-Key: the same request sent again with it is carried out once",
)
DETACH = argument("--detach", action="store_true", help="print the id and leave it to the queue")
OUTPUT = argument("-o", "--output", metavar="FILE", kind="file", help="write to FILE once it is whole")
STATES = ("queued", "running", "done", "failed", "cancelled")
COMMANDS = {
    "run": (
        "submit an experiment and follow it to its results",
        commands.run,
        [
            argument(
                "spec",
                metavar="SPEC|PRESET",
                kind="preset",
                help="a JSON file, - for standard input, JSON as it stands, or a preset's name",
            ),
            argument(
                "--set", action="append", metavar="FIELD=VALUE", help="replace a field of the spec; may be repeated"
            ),
            KEY,
            argument("--dry-run", action="store_true", help="what the experiment would be; nothing is stored"),
            DETACH,
        ],
    ),
    "extend": (
        "add repetitions to an experiment and follow it to its results",
        commands.extend,
        [
            EXPERIMENT,
            argument("repetitions", type=int, metavar="REPETITIONS", help="further runs of each point"),
            KEY,
            DETACH,
        ],
    ),
    "retry": (
        "queue an experiment's failed and cancelled runs again and follow it to its results",
        commands.retry,
        [EXPERIMENT, KEY, DETACH],
    ),
    "list": (
        "list experiments, newest first",
        commands.list_experiments,
        [
            argument("-q", "--q", metavar="WORDS", help="only experiments with these words in their name or spec"),
            argument("--state", choices=STATES, help="only experiments in this state"),
            argument("--limit", type=int, metavar="N", help="at most N of them (50)"),
        ],
    ),
    "presets": ("list the named specs that ship with ipclab", commands.presets, []),
    "show": ("show an experiment: spec, state, progress, time left", commands.show, [EXPERIMENT]),
    "watch": ("follow an experiment to its results", commands.watch, [EXPERIMENT]),
    "results": (
        "show the table of results",
        commands.results,
        [
            EXPERIMENT,
            argument("--all", action="store_true", help="every figure, however wide"),
        ],
    ),
    "findings": ("show what follows from an experiment, in sentences", commands.findings, [EXPERIMENT]),
    "compare": (
        "compare two experiments, or two values of an axis",
        commands.compare,
        [
            argument(
                "baseline",
                metavar="BASELINE",
                kind="experiment",
                help="an experiment, or a baseline's name; with --axis a value of it",
            ),
            argument(
                "candidate", metavar="CANDIDATE", kind="experiment", help="an experiment; with --axis a value of it"
            ),
            argument("--axis", metavar="FIELD", help="compare two values of this field within --experiment"),
            argument("--experiment", type=identity, metavar="ID", kind="experiment", help="the one with both values"),
            argument("--delta", type=float, metavar="SHARE", help="what counts as equivalent (0.03)"),
            argument("--force", action="store_true", help="across environments that differ, too"),
        ],
    ),
    "advice": (
        "rank the mechanisms by what this host has measured",
        commands.advice,
        [
            argument(
                "fields",
                nargs="*",
                metavar="FIELD=VALUE",
                kind="question",
                help="message_size=4096, workload=pingpong, want=latency_p99 and the like",
            ),
            argument("--measure", action="store_true", help="queue the runs that would settle what is open"),
        ],
    ),
    "export": (
        "write results, runs, samples or findings to a file",
        commands.export,
        [
            EXPERIMENT,
            argument("what", nargs="?", choices=tuple(commands.EXPORTS), default="results", help="results by default"),
            argument("--format", choices=("csv", "json", "ndjson", "markdown"), help="csv where there is one"),
            argument("--all", action="store_true", help="every column of the results' CSV"),
            OUTPUT,
        ],
    ),
    "report": ("write the report: one HTML file that needs no network", commands.report, [EXPERIMENT, OUTPUT]),
    "bundle": (
        "write an experiment as one file that others can verify",
        commands.bundle,
        [
            EXPERIMENT,
            argument("--host", metavar="LABEL", help="a label for this host in it; without one it has none"),
            argument("--directory", metavar="DIRECTORY", kind="file", help="where to write it (the current one)"),
        ],
    ),
    "import": (
        "take bundles of other hosts in, as experiments that can be read and compared",
        commands.take_in,
        [argument("files", nargs="+", metavar="FILE", kind="file", help="bundles, which are verified first")],
    ),
    "verify": (
        "verify bundles: their digest, their form, and every figure that follows from their runs",
        commands.verify,
        [argument("files", nargs="+", metavar="FILE", kind="file", help="bundles; no daemon is needed")],
    ),
    "cancel": ("stop experiments", commands.cancel, [EXPERIMENTS]),
    "delete": ("delete experiments, their results and their samples", commands.delete, [EXPERIMENTS]),
    "baselines": (
        "list baselines, or show what came after one of them",
        commands.baselines,
        [argument("name", nargs="?", metavar="NAME", kind="baseline", help="the baseline whose history is shown")],
    ),
    "pin": (
        "pin an experiment under a baseline's name: later ones of its spec are compared with it",
        commands.pin,
        [BASELINE, EXPERIMENT],
    ),
    "unpin": ("forget a baseline's name; its experiment stays", commands.unpin, [BASELINE]),
    "host": ("show the daemon, its host, and the transports that it has", commands.host, []),
}
# Subcommands that another package brings: its program takes the words that follow.
OTHERS = {"campaign": ("ipclab-fleet", "carry one study to many machines, and see what has arrived")}


def common_options(default):
    """The options of every command, before or after its name."""
    parser = argparse.ArgumentParser(add_help=False, argument_default=default)
    where = parser.add_argument_group("the daemon")
    where.add_argument("--socket", metavar="PATH", help=f"its unix socket (IPCLAB_SOCKET; {SOCKET})")
    where.add_argument("--url", metavar="URL", help="its address over TCP instead (IPCLAB_URL)")
    where.add_argument("--token-file", metavar="FILE", help="the token that writing over TCP needs (IPCLAB_TOKEN_FILE)")
    shape = parser.add_argument_group("output")
    shape.add_argument("--json", action="store_true", help="the API's document on standard output, and nothing else")
    shape.add_argument("--plain", action="store_true", help="text on a terminal too, without bars")
    return parser


def make_parser():
    epilog = "exit status:\n" + "\n".join(f"  {status:<4}{words}" for status, words in STATUSES.items())
    parser = argparse.ArgumentParser(
        prog="ipclab",
        description="The command line of ipclabd: what it costs to move data between processes here.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common_options(None)],
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = common_options(argparse.SUPPRESS)
    for name, (words, function, arguments) in COMMANDS.items():
        sub = subparsers.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.", parents=[common])
        sub.set_defaults(function=function)
        for names, options, kind in arguments:
            sub.add_argument(*names, **options).kind = kind
    for name in present_others():
        subparsers.add_parser(name, help=OTHERS[name][1], add_help=False)
    return parser


def program_of(name):
    """The path of one of the others: in its room of the checkout, or where its package is installed beside this one's
    files. PATH is not searched."""
    place, program = Path(__file__).resolve().parents[2], OTHERS[name][0]
    found = (path for path in (place / "fleet" / program, place.parent / program / program) if path.is_file())
    return next(found, None)


def present_others():
    return [name for name in OTHERS if program_of(name)]


def run_other(name, words):
    program = program_of(name)
    if program is None:
        return fail(EXIT_USAGE, f"{name} is a command of the package {OTHERS[name][0]}, which is not installed")
    sys.stdout.flush()
    os.execv(program, [str(program), *words])


def client_of(arguments):
    environment = os.environ
    if arguments.socket and arguments.url:
        raise commands.Usage("--socket and --url are two addresses; give one of them")
    address = arguments.socket or arguments.url or environment.get("IPCLAB_SOCKET") or environment.get("IPCLAB_URL")
    file = arguments.token_file or environment.get("IPCLAB_TOKEN_FILE")
    token = environment.get("IPCLAB_TOKEN")
    if file:
        try:
            with open(file) as text:
                token = text.read().strip()
        except OSError as error:
            raise commands.Usage(f"the token file {file} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise commands.Usage(f"the token file {file} has no token: it is not text") from error
    try:
        return Client(address or SOCKET, token)
    except ValueError as error:
        raise commands.Usage(str(error)) from error


# ---- completion ----


def completion(words):
    """The completions of the last of the words after `ipclab`; none on an error, which a shell could not show."""
    parser = make_parser()
    *before, current = unsplit(words) or [""]
    name = next((word for word in before if word in COMMANDS or word in OTHERS), None)
    if name in OTHERS:
        return []  # its words are another program's
    own = subparser(parser, name) if name else parser
    options = {option: action for action in own._actions for option in action.option_strings}
    previous = options.get(before[-1]) if before else None
    if previous is not None and previous.nargs != 0:
        return candidates(previous, before, current)
    if current.startswith("-"):
        return [option for option in options if option.startswith(current)]
    if name is None:
        return [one for one in (*COMMANDS, *present_others()) if one.startswith(current)]
    positionals = [action for action in own._actions if not action.option_strings]
    given = sum(not word.startswith("-") for word in before[before.index(name) + 1 :])
    if not positionals or (given >= len(positionals) and positionals[-1].nargs not in ("*", "+")):
        return []
    found = candidates(positionals[min(given, len(positionals) - 1)], before, current)
    return [one.partition("=")[2] for one in found] if "=" in words[-2:] else found


def unsplit(words):
    """bash takes FIELD=VALUE for three words, and completes the last of them."""
    joined = []
    for at, word in enumerate(words):
        if joined and (word == "=" or (at > 0 and words[at - 1] == "=")):
            joined[-1] += word
        else:
            joined.append(word)
    return joined


def subparser(parser, name):
    (action,) = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))
    return action.choices[name]


def candidates(action, before, current):
    if action.choices:
        found = list(action.choices)
    elif getattr(action, "kind", None) in SERVED:
        found = served(action.kind, before)
        if action.kind == "question" and "=" not in current:
            found = dict.fromkeys(one.partition("=")[0] + "=" for one in found)
    else:
        return []  # the shell completes files by itself
    return [str(one) for one in found if str(one).startswith(current)]


def questions(client):
    """FIELD=VALUE for each field of /advice, with the values that the daemon's description lists."""
    for one in client.get("/openapi.json")["paths"]["/advice"]["get"]["parameters"]:
        yield from (f"{one['name']}={value}" for value in one["schema"].get("enum", [""]))


SERVED = {
    "preset": lambda client: [one["name"] for one in client.get("/presets")["items"]],
    "experiment": lambda client: ["last", *(one["id"] for one in client.get("/experiments", limit=20)["items"])],
    "question": lambda client: list(questions(client)),
    "baseline": lambda client: [one["name"] for one in client.get("/baselines")["items"]],
}


def served(kind, before):
    """Names that the daemon knows, where one responds."""
    options = argparse.ArgumentParser(add_help=False, parents=[common_options(None)], exit_on_error=False)
    try:
        client = client_of(options.parse_known_args(before)[0])
        return SERVED[kind](client)
    except (commands.Usage, argparse.ArgumentError, Refusal, NotServed, Unreachable):
        return []


# ---- main ----


def fail(status, error):
    print(f"ipclab: {error}", file=sys.stderr)
    return status


def main():
    screen.put_up()
    if sys.argv[1:2] == ["--complete"]:
        print("\n".join(completion(sys.argv[2:])))
        return EXIT_DONE
    if sys.argv[1:2] and sys.argv[1] in OTHERS:
        return run_other(sys.argv[1], sys.argv[2:])
    parser = make_parser()
    arguments = parser.parse_args()
    if arguments.command in OTHERS:
        parser.error(f"{arguments.command} has options of its own, which follow it; none is before it")
    try:
        status = arguments.function(client_of(arguments), arguments)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # of `ipclab list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_DONE
    except commands.Usage as error:
        return fail(EXIT_USAGE, error)
    except NotServed as error:
        return fail(EXIT_MISSING, error)
    except Refusal as error:
        if error.status == 404:
            return fail(EXIT_MISSING, error)
        return fail(EXIT_FAILING if error.status >= 500 else EXIT_REFUSED, error)
    except Unreachable as error:
        return fail(EXIT_UNREACHABLE, error)
    except UnicodeEncodeError:
        return fail(EXIT_USAGE, "an argument has bytes that are not UTF-8, or characters that an address cannot have")
    except OSError as error:
        return fail(EXIT_USAGE, error)
