# SPDX-License-Identifier: MIT
"""A function for each subcommand. It takes the client and the parsed arguments, prints, and returns the exit status;
what goes wrong leaves it as an exception, which main turns into a sentence and a status."""

import contextlib
import json
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from ipclab_cli import bundle as bundles
from ipclab_cli.figures import figures_of
from ipclab_cli.http import Unreachable, with_query
from ipclab_cli.progress import FINAL, display_for, follow
from ipclab_cli.screen import visible
from ipclab_cli.table import show_list, show_results, show_skipped, varies
from ipclab_cli.words import field_text, minute_text, number_text, point_text, seconds_text
from ipclab_cli.words import size_text as bytes_of

DONE, ENDED_OTHERWISE = 0, 1
BUNDLE_SECONDS = 600  # the daemon computes the digest of all of it before the first byte
MEDIA = {"json": "application/json", "csv": "text/csv", "ndjson": "application/x-ndjson", "markdown": "text/markdown"}
# The lists that `export` can write, with the API's formats of each. The first format is the default.
EXPORTS = {
    "results": ("csv", "json"),
    "runs": ("csv", "json"),
    "samples": ("csv", "ndjson"),
    "findings": ("json", "markdown"),
}


class Usage(Exception):
    """Arguments that do not go together, or a file that is no spec."""


def show_json(document):
    json.dump(document, sys.stdout, ensure_ascii=False, indent=2)
    print()


def resolve(client, word):
    """An experiment's id; `last` is the newest experiment."""
    if word != "last":
        return int(word)
    newest = client.get("/experiments", limit=1)["items"]
    if not newest:
        raise Usage("there is no experiment yet, so none is the last")
    return newest[0]["id"]


# ---- submitting and following ----


def spec_of(word, stdin):
    """The posted body: of a file, of standard input (-), of JSON as it stands, or of a preset's name."""
    if word == "-":
        read, source = stdin.read, "standard input"
    elif word.lstrip().startswith("{"):
        read, source = lambda: word, "the argument"
    elif os.path.sep in word or word.endswith(".json") or Path(word).is_file():
        read, source = Path(word).read_text, word
    else:
        return {"preset": word}
    try:
        spec = json.loads(read())
    except OSError as error:
        raise Usage(f"{source} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # no UTF-8, too
        raise Usage(f"{source} is not JSON: {error}") from error
    if not isinstance(spec, dict):
        raise Usage(f"{source} is no spec: it must be a JSON object")
    return spec


def field_of(text):
    """FIELD=VALUE: the value as JSON, or as it stands where it is none (transport=pipe)."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise Usage(f"{text} is not of the form FIELD=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
    except RecursionError as error:
        raise Usage(f"the value of {name} is nested too deeply") from error


def verdict_of(experiment):
    progress = experiment["progress"]
    whole = experiment["state"] == "done" and progress["runs_done"] == progress["runs_total"]
    return DONE if whole else ENDED_OTHERWISE


def watch_until_end(client, identity, arguments):
    experiment = follow(client, identity, display_for(arguments.plain, arguments.json))
    if arguments.json:
        show_json(experiment)
        return verdict_of(experiment)
    show_results(list(client.items(f"/experiments/{identity}/results")), figures_of(client.get("/openapi.json")))
    show_skipped(experiment["skipped"])
    verdict = verdict_of(experiment)
    if verdict != DONE:
        progress = experiment["progress"]
        reason = f": {experiment['error']}" if experiment.get("error") else ""
        print(
            f"\nExperiment {identity} is {experiment['state']}, {progress['runs_done']} of "
            f"{progress['runs_total']} runs done{reason}"
        )
    return verdict


def show_enough(plan):
    """The most repetitions that any of the points needs."""
    known = [point for point in plan["points"] if point.get("enough")]
    if not known:
        return
    beyond = [point["enough"] for point in known if point["enough"]["repetitions"] is None]
    if beyond:
        print(
            f"by earlier runs, for {len(beyond)} of {len(known)} points {beyond[0]['repetitions_reason']} to show a"
            f" difference of {beyond[0]['difference']:.0%}"
        )
    known = [point for point in known if point["enough"]["repetitions"] is not None]
    if not known:
        return
    worst = max(known, key=lambda point: point["enough"]["repetitions"])
    enough = worst["enough"]
    of = " of the others" if beyond else ""
    print(
        f"by earlier runs, {enough['repetitions']} repetitions{of} show a difference of {enough['difference']:.0%};"
        f" this has {worst['runs']}"
    )


def show_split(plan):
    """For the point with the largest error as planned: the division of the same time that makes it smaller."""
    splits = [point["split"] for point in plan["points"] if point.get("split")]
    worst = max(splits, key=lambda split: split["relative_error_as_planned"], default=None)
    if not worst or worst["relative_error"] >= 0.8 * worst["relative_error_as_planned"]:
        return
    print(
        f"in the same time, {worst['repetitions']} repetitions of {worst['duration_seconds']} s give a standard error"
        f" of {worst['relative_error']:.2%} in place of {worst['relative_error_as_planned']:.2%}"
    )


def show_plan(plan):
    runs, points = plan["runs"], len(plan["points"])
    of = f"{runs} run{'s' * (runs != 1)} of {points} point{'s' * (points != 1)}"
    print(f"{of}, about {seconds_text(plan['estimated_seconds'])}")
    if plan["runs_at_most"] > plan["runs"]:
        most = seconds_text(plan["estimated_seconds_at_most"])
        print(f"until enough is known: {plan['runs_at_most']} runs at most, about {most}")
    show_enough(plan)
    show_split(plan)
    show_skipped(plan["skipped"])


def run(client, arguments):
    spec = spec_of(arguments.spec, sys.stdin) | dict(map(field_of, arguments.set or []))
    headers = {"Idempotency-Key": arguments.key} if arguments.key else {}
    target = "/experiments"
    if arguments.dry_run:
        client.require("POST", "/experiments", "dry_run")
        plan = client.json("POST", "/experiments?dry_run=true", json.dumps(spec), headers)
        show_json(plan) if arguments.json else show_plan(plan)
        return DONE
    return queued(client, client.json("POST", target, json.dumps(spec), headers), arguments)


def queued(client, experiment, arguments):
    """What follows a request that has put the experiment into the queue: its id alone, or all of it to its end."""
    identity = experiment["id"]
    if arguments.detach:
        show_json(experiment) if arguments.json else print(identity)
        return DONE
    preset = experiment["spec"].get("preset")
    what = experiment["name"] or (f"preset {preset}" if preset else "unnamed")
    words = f"Experiment {identity}: {what}, {experiment['progress']['runs_total']} runs"
    print(words, file=sys.stderr if arguments.json else sys.stdout, flush=True)
    try:
        return watch_until_end(client, identity, arguments)
    except KeyboardInterrupt:
        print(f"\nThe experiment goes on; `ipclab cancel {identity}` stops it.", file=sys.stderr)
        raise


def extend(client, arguments):
    return again(client, arguments, "extend", json.dumps({"repetitions": arguments.repetitions}))


def retry(client, arguments):
    return again(client, arguments, "retry", "{}")


def again(client, arguments, how, body):
    identity = resolve(client, arguments.experiment)
    client.require("POST", f"/experiments/{{id}}/{how}")
    headers = {"Idempotency-Key": arguments.key} if arguments.key else {}
    return queued(client, client.json("POST", f"/experiments/{identity}/{how}", body, headers), arguments)


def watch(client, arguments):
    return watch_until_end(client, resolve(client, arguments.experiment), arguments)


def cancel(client, arguments):
    documents = [client.json("POST", f"/experiments/{resolve(client, word)}/cancel") for word in arguments.experiments]
    if arguments.json:
        show_json({"items": documents, "next": None})
    else:
        for experiment in documents:
            state = "being stopped" if experiment["state"] == "running" else experiment["state"]
            print(f"Experiment {experiment['id']} is {state}")
    return DONE


def delete(client, arguments):
    """The names are resolved first: the first deletion makes another experiment the newest."""
    identities = [resolve(client, word) for word in arguments.experiments]
    for identity in identities:
        client.request("DELETE", f"/experiments/{identity}")
        if not arguments.json:
            print(f"Experiment {identity} is deleted")
    if arguments.json:
        show_json({"deleted": identities})
    return DONE


# ---- reading ----


def progress_text(experiment):
    progress = experiment["progress"]
    failed = f", {progress['runs_failed']} failed" if progress["runs_failed"] else ""
    return f"{progress['runs_done']}/{progress['runs_total']}{failed}"


def list_experiments(client, arguments):
    page = client.get("/experiments", q=arguments.q, state=arguments.state, limit=arguments.limit)
    if arguments.json:
        show_json(page)
        return DONE
    rows = [
        [str(e["id"]), e["state"], progress_text(e), minute_text(e["created_at"]), e["name"] or "–"]
        for e in page["items"]
    ]
    show_list(["id", "state", "runs", "created (UTC)", "name"], rows, right=("id",))
    if page["next"]:
        chosen = (("--q", arguments.q), ("--state", arguments.state), ("--limit", 2 * (arguments.limit or 50)))
        words = [shlex.quote(str(word)) for name, value in chosen if value for word in (name, value)]
        print("… and older ones: ipclab list", *words)
    return DONE


def preset_time(here):
    if here["last"] and here["last"]["took_seconds"] is not None:
        return seconds_text(here["last"]["took_seconds"])
    return "-" if here["estimated_seconds"] is None else f"about {seconds_text(here['estimated_seconds'])}"


def presets(client, arguments):
    document = client.get("/presets")
    if arguments.json:
        show_json(document)
    else:
        rows = [[one["name"], preset_time(one["here"]), one["description"]] for one in document["items"]]
        show_list(["name", "takes here", "what it is"], rows)
    return DONE


def until_lines(until):
    """What `until` has reached, and of each row or pair that it has not how near it is."""
    what = "rows" if until.get("pairs") is None else "pairs"
    if until[f"{what}_reached"] is None:
        return [until["state"]]
    lines = [
        f"{until['state']}: the {until['figure']} of {until[f'{what}_reached']} of {until[what]} {what} is known within"
        f" {difference_text(until['relative_ci'])}{', or decided' if what == 'pairs' else ''}"
    ]
    for one in until[f"{what}_not_reached"]:
        sides = [one["point"]] if what == "rows" else [one["candidate"], one["baseline"]]
        width, needed = one["relative_ci"], one["repetitions_needed"]
        words = [
            "no interval" if width is None else f"within {difference_text(width)}",
            f"about {needed} repetitions would do" if needed else "",
            one.get("reason") or "",
        ]
        lines.append(" beside ".join(map(point_text, sides)) + ": " + "; ".join(word for word in words if word))
    return lines


def search_lines(search):
    lines = [f"{search['state']}: the highest rate with a p99 below {search['latency_p99_below_us']:g} µs"]
    for one in search["points"]:
        rates = [(one["highest_rate"], "kept"), (one["lowest_rate_not_kept"], "not kept")]
        words = ", ".join(f"{rate:,} messages/s {kept}" for rate, kept in rates if rate)
        state = one["state"].replace("_", " ")
        lines.append(f"{point_text(one['point'])}: {state}" + (f"; {words}" if words else ""))
    return lines


def show(client, arguments):
    experiment = client.get(f"/experiments/{resolve(client, arguments.experiment)}")
    if arguments.json:
        show_json(experiment)
        return DONE
    left = experiment["eta_seconds"]
    facts = {
        "experiment": experiment["id"],
        "name": experiment["name"],
        "state": experiment["state"],
        "error": experiment["error"],
        "runs": progress_text(experiment),
        "time left": None if left is None or experiment["state"] in FINAL else f"about {seconds_text(left)}",
        "place in the queue": experiment["queue_position"],
        "created": experiment["created_at"],
        "started": experiment["started_at"],
        "finished": experiment["finished_at"],
        "seed": experiment["seed"],
        "version": experiment["version"],
        "spec": json.dumps(experiment["spec"], ensure_ascii=False),
    }
    for name, value in facts.items():
        if value is not None:
            print(f"{name:20}{value}")
    for name, lines_of in (("until", until_lines), ("search", search_lines)):
        for number, line in enumerate(lines_of(experiment[name]) if experiment.get(name) else []):
            print(f"{'' if number else name:20}{line}")
    show_skipped(experiment["skipped"])
    return DONE


def results(client, arguments):
    identity = resolve(client, arguments.experiment)
    if arguments.json:
        show_json(client.get(f"/experiments/{identity}/results"))
        return DONE
    rows = list(client.items(f"/experiments/{identity}/results"))
    show_results(rows, figures_of(client.get("/openapi.json")), arguments.all)
    show_skipped(client.get(f"/experiments/{identity}")["skipped"])
    return DONE


def show_findings(document):
    for item in document["items"]:
        print(f"- {item['sentence']}{doubt_of(item)}")
    study = document.get("study")
    for answer in study["answers"] if study else []:
        here = answer["sentence"] or ", ".join(map(figure_text, answer["figures"])) or f"no answer: {answer['reason']}"
        published = answer["published"]
        there = published["words"] or f"{published['value']} {published['unit']}"
        print(f"\n{answer['question']}\n  here       {here}{doubt_of(answer)}\n  published  {there}")


def doubt_of(item):
    return " (confidence is reduced)" if item["confidence"] == "reduced" else ""


def figure_text(figure):
    """The figure of a finding: "ratio 1.25 [1.2, 1.31] (pipe)"."""
    of = f"({figure['of']})" if figure["of"] else ""
    interval = figure["interval"] and "[{}, {}]".format(
        *(number_text(figure["interval"][end]) for end in ("low", "high"))
    )
    words = (figure["name"], number_text(figure["value"]), figure["unit"], interval, of)
    return " ".join(word for word in words if word)


def findings(client, arguments):
    identity = resolve(client, arguments.experiment)
    document = client.optional("GET", f"/experiments/{identity}/findings", "/experiments/{id}/findings")
    if arguments.json:
        show_json(document)
    elif document["items"] or document.get("study"):
        show_findings(document)
    else:
        print(f"Experiment {identity} carries no finding.")
    return DONE


# The units that a reader sees, and the divisor of each.
READ = {"bytes/s": ("MB/s", 1e6), "ns": ("µs", 1e3)}


def interval_text(interval, text=lambda value: f"{value:.4g}"):
    return "–" if interval is None else f"{text(interval['low'])} … {text(interval['high'])}"


def show_differences(what, differences):
    print(f"What differs in {what}:" if differences else f"Nothing differs in {what}.")
    for one in differences:
        unlike = "  (not comparable across it)" if one.get("unlike") else ""
        print(f"  {one['key']}: {json.dumps(one['baseline'])} → {json.dumps(one['candidate'])}{unlike}")


def difference_text(share):
    """A share as the findings have it: from twice as much on as a factor."""
    factor = 1 + share
    if share < 1:
        return f"{100 * share:.1f} %"
    return f"a factor of {factor:.0f}" if factor >= 100 else f"a factor of {factor:.3g}"


def remark_of(figure):
    """The smallest visible difference of an undecided figure, and the number of runs that would decide it."""
    if figure["verdict"] != "undecided":
        return ""
    seen, needed = figure["visible_difference"], figure["runs_needed"]
    words = [
        f"would have seen {difference_text(seen)}" if seen is not None else "",
        f"{needed} runs would decide" if needed else "",
        "more runs would be needed than take part" if "runs_needed_reason" in figure else "",
    ]
    return ", ".join(word for word in words if word)


def varying(points):
    """The fields in which the points differ."""
    return [field for field in dict.fromkeys(key for point in points for key in point) if varies(points, field)]


def label_of(point, fields):
    return ", ".join(field_text(point, field) for field in fields if field in point) or "the point"


def comparison_rows(document):
    """A line for each figure that was compared, below the fields that distinguish its point."""
    points = [row["candidate"]["point"] for row in document["rows"]]
    fields = varying(points)
    for row, point in zip(document["rows"], points, strict=True):
        label = label_of(point, fields)
        for name, figure in row["figures"].items():
            if figure:
                interval = interval_text(figure["interval"])
                yield [label, name, f"{figure['ratio']:.3f}", interval, figure["verdict"], remark_of(figure)]


def show_machine(machine):
    """None: the runs of both sides took turns."""
    if not machine:
        return
    differing = [probe for probe in machine["probes"] if probe["differs"]]
    if machine["state"] == "unknown":
        print(f"Whether the machine was in the same state is unknown: {machine['reason']}.")
    for probe in differing:
        print(
            f"The machine's state differs: {probe['what']} on CPU {probe['cpu']} is {probe['ratio']:.2f} times as long "
            f"{interval_text(probe['interval'])}; a verdict may be of that."
        )


def counts_text(verdicts):
    return ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items() if count) or "nothing was compared"


def added_text(document):
    """Empty where nobody added repetitions; the two values of an axis are of one experiment."""
    axis = document.get("axis")
    sides = ("candidate",) if axis else ("baseline", "candidate")
    numbers = [(side, document.get(side, {}).get("repetitions_added", 0)) for side in sides]
    added = [
        f"{n} repetition{'' if n == 1 else 's'} of the {'experiment' if axis else side}" for side, n in numbers if n > 0
    ]
    if not added:
        return ""
    return (
        f"{' and '.join(added)} came by hand: if that depended on what the runs before showed, a false difference is "
        "more likely than the correction allows."
    )


def show_comparison(document):
    show_differences("the environments", document["environment"]["differences"])
    for side in ("baseline", "candidate"):
        for one in document.get(side, {}).get("environment_changed", []):
            back = " (and back within a run)" if one["last"] is None else ""
            values = f"{json.dumps(one['first'])} → {json.dumps(one['last'])}{back}"
            print(f"Between the runs of the {side}, {one['key']} changed: {values}")
    if document["environment"]["forced"]:
        print("The comparison was forced: a verdict may be the environment's.")
    show_machine(document.get("machine"))
    show_differences("the settings", document["settings"]["differences"])
    print()
    headings = ["point", "figure", "ratio", "interval", "verdict", "remark"]
    show_list(headings, list(comparison_rows(document)), right=("ratio", "interval"))
    print(f"\n{counts_text(document['verdicts'])}; equivalent is within {100 * document['delta']:.1f} %")
    if added := added_text(document):
        print(added)
    for unlike in dict.fromkeys(row.get("unlike") for row in document["rows"]):
        if unlike:
            print(f"The settings of the two sides are unlike, too: {unlike}.")
    for side in ("baseline", "candidate"):
        if document[f"only_in_{side}"]:
            print(f"Only the {side} has {len(document[f'only_in_{side}'])} of the points.")


def show_advice(document):
    print(document["sentence"])
    fields = varying([item["point"] for item in document["items"]])
    rows = []
    for item in document["items"]:
        unit, scale = READ.get(item["unit"], (item["unit"], 1))
        words = [
            item["reason"] or "",
            "noisy" if item["noisy"] else "",
            "not steady" if item["unsteady"] else "",
            "not observed" if item["not_observed"] else "",
            "environment changed" if item["environment_changed"] else "",
            "neighbouring runs alike" if item["neighbours_alike"] else "",
            "repetitions added" if item["repetitions_added"] else "",
            "interpolated" if item["fit"] else "",
        ]
        rows.append(
            [
                item["standing"],
                label_of(item["point"], fields),
                f"{number_text(item['value'] / scale)} {unit}",
                interval_text(item["interval"], lambda value, scale=scale: number_text(value / scale)),
                str(item["runs"]),
                seconds_text(item["age_seconds"]),
                ", ".join(dict.fromkeys(word for word in words if word)),
            ]
        )
    if rows:
        print()
        headings = ["standing", "mechanism", "value", "interval", "runs", "age", "remark"]
        show_list(headings, rows, right=("value", "interval", "runs", "age"))
    if document["settle"]:
        seconds = document["settle_seconds"]
        time = f" take about {seconds_text(seconds)}" if seconds is not None else ""
        print(f"\nThe runs that are proposed{time}: ipclab run '{json.dumps(document['settle'])}'")


def compare(client, arguments):
    parameters = {"delta": arguments.delta, "force": "true" if arguments.force else None}
    if arguments.axis:
        parameters |= {
            "experiment": resolve(client, arguments.experiment) if arguments.experiment else None,
            "axis": arguments.axis,
        }
        if not arguments.experiment:
            raise Usage("--axis compares two of its values within one experiment: name it by --experiment")
        parameters |= {"baseline": arguments.baseline, "candidate": arguments.candidate}
    else:
        if arguments.experiment:
            raise Usage("--experiment goes with --axis")
        baseline = arguments.baseline
        parameters |= {
            "baseline": resolve(client, baseline) if baseline == "last" else baseline,
            "candidate": resolve(client, arguments.candidate),
        }
    document = client.optional("GET", "/compare", "/compare", **parameters)
    if arguments.json:
        show_json(document)
    else:
        show_comparison(document)
    return DONE


# ---- baselines ----


def pin(client, arguments):
    identity = resolve(client, arguments.experiment)
    client.require("PUT", "/baselines/{name}")
    target = f"/baselines/{quote(arguments.name, safe='')}"
    document = client.json("PUT", target, json.dumps({"experiment": identity}))
    if arguments.json:
        show_json(document)
    else:
        print(f"{document['name']} is experiment {document['experiment_id']}")
    return DONE


def unpin(client, arguments):
    client.require("DELETE", "/baselines/{name}")
    client.request("DELETE", f"/baselines/{quote(arguments.name, safe='')}")
    if arguments.json:
        show_json({"unpinned": arguments.name})
    else:
        print(f"{arguments.name} is no baseline any more; its experiment stays")
    return DONE


def baselines(client, arguments):
    if arguments.name is not None:
        return history(client, arguments)
    document = client.optional("GET", "/baselines", "/baselines")
    if arguments.json:
        show_json(document)
        return DONE
    rows = [
        [one["name"], str(one["experiment_id"]), minute_text(one["pinned_at"]), one["experiment_name"] or "–"]
        for one in document["items"]
    ]
    show_list(["baseline", "experiment", "pinned (UTC)", "its name"], rows, right=("experiment",))
    return DONE


def history(client, arguments):
    document = client.optional(
        "GET", f"/baselines/{quote(arguments.name, safe='')}/history", "/baselines/{name}/history"
    )
    if arguments.json:
        show_json(document)
    elif not document["items"]:
        print(f"No later experiment of the spec of {arguments.name} has finished.")
    else:
        show_history(document)
    return DONE


def show_history(document):
    """An experiment a line, then each figure that is on another level since one of them."""
    rows = [
        [
            str(one["experiment_id"]),
            minute_text(one["finished_at"]),
            counts_text(one["verdicts"]) if one["error"] is None else f"not compared: {one['error']}",
            ", ".join(f"{d['key']} {json.dumps(d['candidate'])}" for d in one["differences"] if d["unlike"]) or "–",
        ]
        for one in document["items"]
    ]
    show_list(["experiment", "finished (UTC)", "verdicts", "unlike environment"], rows, right=("experiment",))
    points = [one["point"] for one in document["series"]]
    fields = varying(points)
    for one in document["series"]:
        levels = {segment["from"]: segment["ratio"] for segment in one["segments"] or []}
        for change in one["change_points"] or []:
            label = label_of(one["point"], fields)
            print(f"{one['figure']} of {label} is {levels[change]:.3f} of the baseline's from experiment {change} on")


def advice(client, arguments):
    fields = dict(map(field_of, arguments.fields))
    if arguments.measure:
        client.require("POST", "/advice")
        document = client.json("POST", "/advice", json.dumps(fields))
    else:
        parameters = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
        document = client.optional("GET", "/advice", "/advice", **parameters)
    if arguments.json:
        show_json(document)
    elif arguments.measure:
        print(f"Experiment {document['id']} has the runs that are proposed: ipclab watch {document['id']}")
    else:
        show_advice(document)
    return DONE


def host(client, arguments):
    documents = client.get("/host")
    if arguments.json:
        show_json(documents)
        return DONE
    health, environment, topology = documents["health"], documents["environment"], documents["topology"]
    noise = documents["noise"]
    facts = {
        "daemon": f"ipclabd {health['version']}, {health['status']}"
        + (f": {health['problem']}" if health["problem"] else ""),
        "running": health["running_experiment"] and f"experiment {health['running_experiment']}",
        "queued": f"{health['experiments_queued']} experiments",
        "host": environment["hostname"],
        "kernel": environment["kernel_release"],
        "CPU": environment["cpu_model"],
        "CPUs": len(topology["cpus"]),
        "nodes": len(topology["nodes"]),
        "virtualization": environment["virtualization"],
        "other programs": noise["load"] is not None
        and f"{noise['load']:.2f} CPUs in {noise['window_ns'] / 1e9:.1f} s, {noise['age_seconds']:.0f} s ago",
        "database": bytes_of(health["database_bytes"]),
    }
    for name, value in facts.items():
        if value:
            print(f"{name:20}{value}")
    items = documents["transports"]["items"]
    print(f"{'transports':20}{', '.join(one['name'] for one in items if one['available'])}")
    for one in items:
        if not one["available"]:
            print(f"{'not available':20}{one['name']}: {one['reason']}")
    return DONE


# ---- files ----


@contextlib.contextmanager
def output_file(path):
    """Standard output for None; else a file that has its name only once it is whole."""
    if path is None:
        yield sys.stdout.buffer
        return
    target = Path(path)
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            try:
                yield file
                os.fchmod(file.fileno(), 0o666 & ~umask())
                os.replace(file.name, target)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:  # names the file of the command line, not the one that was to become it
        raise Usage(f"{path} cannot be written: {error.strerror or error}") from error


def umask():
    now = os.umask(0)
    os.umask(now)
    return now


def save(client, target, media, path):
    with output_file(path) as file:
        for piece in client.pieces(target, media):
            file.write(piece)
        file.flush()
    return DONE


def export(client, arguments):
    forms = EXPORTS[arguments.what]
    form = "json" if arguments.json else arguments.format or forms[0]
    if form not in forms:
        raise Usage(f"{arguments.what} can be had as {' or '.join(forms)}, not as {form}")
    if arguments.all and (arguments.what, form) != ("results", "csv"):
        raise Usage("--all is of the results' CSV, which has the usual columns without it")
    identity = resolve(client, arguments.experiment)
    if arguments.what == "findings":
        client.require("GET", "/experiments/{id}/findings")
    if form == "json":
        return save_list(client, f"/experiments/{identity}/{arguments.what}", arguments.output)
    target = with_query(f"/experiments/{identity}/{arguments.what}", {"columns": "all" if arguments.all else None})
    return save(client, target, MEDIA[form], arguments.output)


def save_list(client, target, path):
    """A JSON list with all of its pages as one."""
    with output_file(path) as file:
        document = client.get(target)
        while document["next"] is not None:
            page = client.get(target, cursor=document["next"])
            document["items"] += page["items"]
            document["next"] = page["next"]
        file.write(visible(json.dumps(document, ensure_ascii=False, indent=2)).encode() + b"\n")
    return DONE


def report(client, arguments):
    if arguments.json and not arguments.output:
        raise Usage("a report is HTML: with --json it needs a file to go to, -o FILE")
    identity = resolve(client, arguments.experiment)
    client.require("GET", "/experiments/{id}/report")
    save(client, f"/experiments/{identity}/report", "text/html", arguments.output)
    if arguments.json:
        show_json({"file": arguments.output})
    return DONE


# ---- bundles ----


def bundle(client, arguments):
    """Written under the name that the daemon gives it, which has the digest."""
    identity = resolve(client, arguments.experiment)
    client.require("GET", "/experiments/{id}/bundle")
    target = with_query(f"/experiments/{identity}/bundle", {"host": arguments.host})
    name, pieces = client.download(target, "application/gzip", BUNDLE_SECONDS)
    if not re.fullmatch(r"ipclab-[A-Za-z0-9-]+\.json\.gz", name or ""):
        raise Unreachable(f"the bundle of experiment {identity} came under no bundle's name: {name}")
    path = Path(arguments.directory or ".") / name
    with output_file(path) as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
    if arguments.json:
        show_json({"file": str(path), "sha256": bundles.NAME.search(name)[1]})
    else:
        print(path)
    return DONE


def take_in(client, arguments):
    """Each bundle is verified here first: the daemon checks its form, and computes its rows itself."""
    client.require("POST", "/bundles")
    found = []
    for path in arguments.files:
        try:
            _, digest = bundles.verify(path)
        except bundles.Fault as error:
            raise Usage(f"{path} is refused: {error}") from error
        target = with_query("/bundles", {"sha256": digest})
        found.append(client.json("POST", target, Path(path).read_bytes(), {"Content-Type": "application/gzip"}))
        if not arguments.json:
            print(f"{path}: experiment {found[-1]['id']}")
    if arguments.json:
        show_json(found)
    return DONE


def verify(_client, arguments):
    """Every file is verified, also behind one that is refused."""
    status, found = DONE, []
    for path in arguments.files:
        try:
            document, digest = bundles.verify(path)
        except bundles.Fault as error:
            status = ENDED_OTHERWISE
            found.append({"file": path, "verified": False, "fault": str(error)})
            if not arguments.json:
                print(f"{path}: refused: {error}")
            continue
        rows, runs = len(document["results"]), len(document["runs"])
        computed, others = bundles.coverage(document)
        found.append({"file": path, "verified": True, "sha256": digest, "rows": rows, "runs": runs})
        found[-1] |= {"recomputed": computed, "not_recomputed": others}
        if not arguments.json:
            print(f"{path}: verified: {rows} rows from {runs} runs")
            print(f"  computed anew: {', '.join(computed)}; and the rows' statistics of them")
            print("\n".join(f"  not computed anew: {name}: {why}" for name, why in others.items()))
    if arguments.json:
        show_json(found)
    return status
