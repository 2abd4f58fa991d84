# SPDX-License-Identifier: MIT
"""openapi.json against the specification, against the routes, and against what is really served."""

import json
import re

import jsonschema
import pytest
from conftest import SOURCE
from ipclabtest.transports import where
from openapi_spec_validator import validate

ROW = re.compile(r"\{METHOD_([A-Z]+),\s*\"([^\"]+)\"")


@pytest.fixture
def openapi(unix):
    return unix.openapi


def described(openapi):
    return {(method.upper(), path) for path, item in openapi["paths"].items() for method in item}


def test_it_is_valid(openapi):
    validate(openapi)
    assert openapi["openapi"].startswith("3.1")


def test_it_describes_the_routes_and_nothing_else(openapi):
    rows = set(ROW.findall((SOURCE / "api/handle/route/routes.c").read_text()))
    assert len(rows) > 15
    assert described(openapi) == rows


def test_it_names_the_reasons_of_findings_and_no_others(openapi):
    source = (SOURCE / "daemon/analysis/findings/findings-doubts.c").read_text()
    (added,) = re.findall(
        r'#define FINDING_REPETITIONS_ADDED "(\S+)"', (SOURCE / "daemon/analysis/findings/findings.h").read_text()
    )
    (table,) = re.findall(r"^\} reasons\[\] = \{\n(.+?)^\};", source, re.MULTILINE | re.DOTALL)
    rows = re.findall(r'^ {8}\{"([a-z0-9-]+)", ', table, re.MULTILINE)
    assert len(rows) > 10
    assigned = set(re.findall(r"\.reason = ([^;]+);", source)) - {"reasons[which].reason"}
    made = {added if name == "FINDING_REPETITIONS_ADDED" else name.strip('"') for name in assigned} | set(rows)
    description = openapi["components"]["schemas"]["Finding"]["properties"]["reason"]["description"]
    listed = re.sub(r" \([^)]*\)", "", description.split(": ", 1)[1].removesuffix(". Null elsewhere.")).split(", ")
    assert sorted(listed) == sorted(made)


def test_what_it_describes_is_served(openapi, unix):
    """Each path knows exactly the methods that are described for it."""
    for path, item in openapi["paths"].items():
        target = path.replace("{id}", "999999999").replace("{path}", "none.js").replace("{name}", "none")
        allowed = set(unix.request("OPTIONS", target).headers["Allow"].split(", "))
        methods = {method.upper() for method in item}
        assert allowed == methods | {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set()), path


def test_every_parameter_is_read(openapi, unix, done):
    """A described parameter is not "unknown", whatever it is set to; an undescribed one is."""
    run = unix.get(f"/experiments/{done['id']}/runs")["items"][0]["id"]
    for path, item in openapi["paths"].items():
        if "get" not in item or "{path}" in path:
            continue
        target = path.replace("{id}", str(run if path.startswith("/runs") else done["id"]))
        for parameter in item["get"]["parameters"]:
            if parameter["in"] == "query":
                problem = unix.refused("GET", f"{target}?{parameter['name']}=%20", 400, "bad-parameter")
                assert parameter["name"] in problem["detail"]
        unix.refused("GET", f"{target}?surely_not=1", 400, "unknown-parameter")


def test_writes_are_marked(openapi):
    for path, item in openapi["paths"].items():
        for method, operation in item.items():
            assert ("security" in operation) == (method in ("post", "put", "delete")), (method, path)
            assert operation["operationId"] and operation["summary"]


def test_operations_are_named_once(openapi):
    names = [operation["operationId"] for item in openapi["paths"].values() for operation in item.values()]
    assert len(names) == len(set(names))


def test_the_spec_is_described(openapi):
    """ExperimentSpec stands alone: its references lead somewhere, it takes the presets and refuses what is bad."""
    schema = {"$ref": "#/components/schemas/ExperimentSpec", "components": openapi["components"]}
    validator = jsonschema.Draft202012Validator(schema)
    for path in (SOURCE / "schema/presets").glob("*.json"):
        validator.validate(json.loads(path.read_text())["spec"])
    for bad in ({"transport": "pigeon"}, {"colour": 1}, {"message_size": 0}, {"transport": []}, []):
        assert not validator.is_valid(bad), bad


def test_every_axis_is_described(openapi):
    """Each row of the table is a field of the spec, with its default, and a member of points. The instance of a point
    follows from another field."""
    axes = re.findall(r"\[AXIS_\w+\] = \{(?:\.value = )?\{\"(\w+)\"", (SOURCE / "schema/spec/axes.c").read_text())
    assert len(axes) >= 13
    spec, point = (openapi["components"]["schemas"][name] for name in ("ExperimentSpec", "Point"))
    assert list(point["properties"]) == axes
    assert set(axes) - set(spec["properties"]) == {"instance"} and spec["properties"]["points"]["default"] == "once"
    for axis in set(axes) & set(spec["properties"]):
        definition = {"$ref": f"#/components/schemas/ExperimentSpec/$defs/{axis}"}
        validator = jsonschema.Draft202012Validator(definition | {"components": openapi["components"]})
        assert validator.is_valid(spec["properties"][axis]["default"])
        assert spec["properties"][axis]["oneOf"][0] == definition
        assert spec["properties"][axis]["oneOf"][1]["items"] == definition
        assert point["properties"][axis] == definition


@pytest.mark.parametrize(
    ("axis", "workloads", "transports"),
    [
        ("placement", None, None),
        ("message_size", ["stream", "pingpong"], None),
        ("call", ["syscall"], None),
        ("direction", ["stream"], where("has_direction")),
        ("wait", ["stream", "pingpong"], where("has_wait")),
    ],
)
def test_an_axis_has_what_it_is_for(openapi, axis, workloads, transports):
    field = openapi["components"]["schemas"]["ExperimentSpec"]["properties"][axis]
    assert field.get("x-workloads") == workloads
    assert field.get("x-transports") == transports


def texts(value):
    """The summaries and descriptions in a document."""
    if isinstance(value, dict):
        yield from (text for key, text in value.items() if key in ("summary", "description") and isinstance(text, str))
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts(inner)


def test_descriptions_have_a_subject(openapi):
    """No sentence begins as a clause of another one: "Of a stream: ...", "Whose runs ...", "That are done."."""
    found = list(texts(openapi))
    assert len(found) > 700
    clause = re.compile(r"(^|[.:;] )(Of|Who|Whose|Whom) |^(That|Those) ")
    assert [text for text in found if clause.search(text)] == []


def figures(schema):
    """(name, description) of the figures of a row of results, those of its objects by both names."""
    for name, figure in schema["properties"].items():
        if "x-unit" in figure:
            yield name, figure
        for member, inner in figure.get("properties", {}).items():
            if member != "kind":
                yield f"{name}_{member}", inner


def test_every_figure_is_described(openapi):
    """Each row of the table is a figure of a row of results, in the table's order, with a title and a unit."""
    table = (SOURCE / "schema/figures.c").read_text()
    rows = re.findall(r'(RATE|LATENCY|ONE_WAY)\(\s*"(\w+)"', table)
    of_ends = re.findall(r'of_group, "(\w+)"', table)
    of_run = re.findall(r'FIGURES_PER_UNIT, "(\w+)"', table)
    assert len(rows) >= 19 and len(of_ends) >= 10
    prefixes = {"LATENCY": "latency_ns_", "ONE_WAY": "latency_one_way_ns_"}
    described = list(figures(openapi["components"]["schemas"]["ResultFigures"]))
    assert [name for name, _ in described] == [
        *(prefixes.get(group, "") + name for group, name in rows),
        *of_ends,
        *of_run,
        *(name + end for end in ("_sender", "_receiver") for name in of_ends),
    ]
    for name, figure in described:
        assert figure["title"] and figure["x-unit"] and isinstance(figure["x-usual"], bool), name


def names(value):
    """Members, and beside a null its reason, which goes without saying; a hardware's count by mode too."""
    return {re.sub("_(user|kernel|reason)$", "", name) for name in value}


def test_the_agents_reports_are_described(openapi, unix):
    """Each setting that an agent found in force, each count and each figure has words and a unit."""
    schemas = openapi["components"]["schemas"]
    settings = schemas["AgentEffective"]["properties"].keys() | schemas["Effective"]["properties"].keys()
    counters = schemas["Counters"]["properties"].keys()
    result = names(schemas["RunResult"]["properties"])
    transports = unix.get("/transports")["items"]
    short = {"messages": 200, "warmup_seconds": 0, "message_size": 4096}
    specs = [
        short | {"transport": [one["name"] for one in transports if one["available"]], "workload": "pingpong"},
        short | {"transport": "tcp", "rate": 10000},
        short | {"workload": ["syscall", "context-switch"]},
    ]
    specs[2].pop("message_size")
    engines = next(one["engines"] for one in transports if one["name"] == "tcp")
    for engine in (name for name, facts in engines.items() if facts["available"]):
        modes = ["two-copy", "zero-copy"] if engine == "syscall" or engines[engine]["zero_copy"] else "two-copy"
        specs.append(short | {"transport": "tcp", "engine": engine, "copy_mode": modes})
    for spec in specs:
        experiment = unix.wait_final(unix.post(spec)["id"])
        assert experiment["state"] == "done", experiment
        for run in unix.items(f"/experiments/{experiment['id']}/runs"):
            for agent in run["agents"]:
                assert names(agent["effective"]) <= settings, run["point"]
                for key in ("io_uring", "io_uring_zero_copy"):
                    assert names(agent["effective"].get(key, {})) <= schemas["Uring"]["properties"].keys()
            for counted in run["result"]["counters"].values():
                assert names(counted) <= counters, run["point"]
            assert names(run["result"]) <= result, run["point"]
            for agent in run["agents"]:
                assert names(run["result"][agent["role"]]) == schemas["AgentResult"]["properties"].keys()
