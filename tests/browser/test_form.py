# SPDX-License-Identifier: MIT
"""What the form posts: the preset or the spec that it was opened with, and of that only what a person changed."""

import http.client
import json
import re

import pytest
from axe import violations
from selenium.webdriver.common.keys import Keys
from test_dashboard import choose, open_experiment

PER_ROLE = {"sender": {"cpu": 0}, "receiver": {"node": 0, "memory": {"policy": "bind", "nodes": [0]}}}
SPECS = [
    {"preset": "quick", "placement": ["same-cpu", PER_ROLE]},
    {"placement": "all-node-pairs", "duration_seconds": 1},
    {"placement": ["same-node", "all-cpu-pairs"], "messages": 1000},
    {"workload": ["syscall", "context-switch"], "call": ["getpid", "read-zero"], "processes": [2, 4], "working_set": 0},
    {"placement": PER_ROLE, "rate": 1000.5, "seed": 7, "chunk": False, "fields": [1, 8], "direction": "up"},
    {"tune": {"numa_balancing": True}, "require": {"smt": False}, "transport_options": {"pipe_size": 65536}},
    {"copy_mode": "zero-copy", "engine": ["syscall", "io_uring"], "threads": [1, 2], "verify": "checksum"},
]

# Keeps what is posted from the server and remembers it.
RECORD = """window.posted = [];
    const real = window.fetch;
    window.fetch = (path, options) => {
        if (options.method !== 'POST' || path !== '/experiments') return real(path, options);
        posted.push(options.body);
        return Promise.resolve(new Response('{"detail": "recorded"}', { status: 409 }));
    }"""


def exchange(daemon, method, target, body=None):
    """A request whose bodies are bytes: (status, text)"""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    headers = {"Authorization": f"Bearer {daemon.token}", "Content-Type": "application/json"}
    connection.request(method, target, body, headers if body is not None else {})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, text


def stored(daemon, experiment):
    """The spec of an experiment, as the server has it."""
    return re.search(r'"spec":(.*?),"error":', exchange(daemon, "GET", f"/experiments/{experiment}")[1], re.S)[1]


@pytest.fixture
def form(page, daemon):
    page.sign(daemon.token)
    page.go("#/new")
    page.wait_for("#field-message_size")
    return page


def chips(page):
    return page.run("return [...document.querySelectorAll('main .chip span')].map((chip) => chip.textContent)")


def remove(page, which):
    button = page.find(f".chip button{which}")
    page.run("arguments[0].scrollIntoView({block: 'center'})", button)  # the form's foot covers its last line
    button.click()


def show_json(page):
    """The spec as the JSON tab shows it, which opens whatever stands in the form."""
    page.find("#tab-json").click()
    assert page.find("#spec-json").is_displayed()
    return page.find("#spec-json").get_property("value")


def enter(page, spec):
    """Opens the form with a spec."""
    show_json(page)
    page.run("arguments[0].value = arguments[1]", page.find("#spec-json"), json.dumps(spec))
    page.find("#tab-form").click()
    assert page.find("#pane-form").is_displayed(), page.text("#json-error")


def submitted(page):
    """What the form posts, which does not reach the server."""
    if not page.run("return window.posted?.length"):
        page.run(RECORD)
    before = page.run("return posted.length")
    page.find("form.panel .primary").click()
    page.wait(lambda: page.run("return posted.length") > before, "it to be posted")
    return json.loads(page.run("return posted.at(-1)"))


def test_every_word_of_the_schema_is_offered(form, daemon):
    """Those of transports come from GET /transports."""
    words = daemon.get("/openapi.json")["components"]["schemas"]["ExperimentSpec"]["$defs"]
    for field, name in (("workload", "workload"), ("call", "call"), ("placement", "placement_word")):
        offered = [box.get_attribute("value") for box in form.all(f"input[name={field}]")]
        assert offered == words[name]["enum"]


def leaves(schema, path, whole):
    """The members of a spec's field, those of an object singly."""
    if not schema.get("properties"):
        return {".".join(path)}
    return set().union(*(leaves(one, [*path, name], whole) for name, one in schema["properties"].items()))


def test_every_field_of_the_schema_has_a_control_or_can_be_added(form, daemon):
    schema = daemon.get("/openapi.json")["components"]["schemas"]["ExperimentSpec"]
    shown = set(form.run("return [...document.querySelectorAll('[id^=field-]')].map((one) => one.id.split('-')[1])"))
    shown |= {"duration_seconds", "messages", "bytes"} if "end" in shown else set()
    wanted = set().union(
        *(leaves(one, [name], schema) for name, one in schema["properties"].items() if name not in shown)
    )
    offered = form.run("return [...document.querySelectorAll('#further option')].map((one) => one.value)")
    assert len(offered) == len(set(offered)) and set(offered) - {""} == wanted
    assert {"rate", "until.relative_ci", "search.rate.latency_p99_below_us", "require.build.commit"} < wanted


def add(page, path, value, key=None):
    """Chooses a further field and gives it a value; by that key, or by the button."""
    choose_further(page, path)
    control = page.find("#further-value")
    if control.tag_name == "select":
        control.find_element("css selector", f"option[value='{value}']").click()
    else:
        control.clear()
        control.send_keys(value)
    if key:
        control.send_keys(key)
    else:
        page.run("arguments[0].click()", page.find("#further-add"))  # the form's foot may lie over it


def choose_further(page, path):
    page.run(
        """const s = document.getElementById('further'); s.value = arguments[0];
        s.dispatchEvent(new Event('change', { bubbles: true }))""",
        path,
    )


def test_further_fields_become_parts_of_the_spec(form, daemon):
    enter(form, {"preset": "quick", "transport_options": {"huge_pages": True}})
    add(form, "rate", "0")
    assert form.text("#further-error") == "0 is not from 0.00001 to 1\u202f000\u202f000\u202f000."
    add(form, "rate", "2e3", Keys.ENTER)
    assert form.focused().get_attribute("id") == "further"
    choose_further(form, "transport_options.pipe_size")
    assert re.search(r"Limit here, pipe, fifo: fs\.pipe-max-size \S+", form.text("#further-hint"))
    add(form, "transport_options.pipe_size", "65536")
    add(form, "direction", "down, up")
    add(form, "search.rate.latency_p99_below_us", "50.5")
    choose_further(form, "require.transparent_hugepage")
    assert f"Here: {daemon.get('/environment')['transparent_hugepage']}." in form.text("#further-hint")
    add(form, "require.smt", "false")
    assert "search: rate.latency_p99_below_us 50.5" in chips(form)
    assert submitted(form) == {
        "preset": "quick",
        "transport_options": {"huge_pages": True, "pipe_size": 65536},
        "rate": 2000,
        "direction": ["down", "up"],
        "search": {"rate": {"latency_p99_below_us": 50.5}},
        "require": {"smt": False},
    }


def test_the_largest_message_of_what_is_chosen_stands_beside_its_size(form, daemon):
    choose(form, "transport", "pipe", "msgq-posix")
    limits = {one["name"]: one["capacity"]["limit"]["name"] for one in daemon.get("/transports")["items"]}
    assert re.search(
        rf"Largest here: pipe 1 GiB, msgq-posix [\d.]+ [KM]iB \({limits['msgq-posix']}\)\.",
        form.text("#field-message_size-hint"),
    )


def test_each_field_has_the_range_of_the_schema_beside_it(form):
    def hint(name):
        return form.text(f"#field-{name}-hint").replace("\u202f", "")

    assert hint("message_size").startswith("Bytes, or with KiB, MiB; separated by commas. From 1 B to 1 GiB.")
    assert hint("threads").endswith("From 1 to 1024.")
    assert hint("warmup_seconds") == "From 0 to 86400."
    assert hint("repetitions").endswith("with an interval. From 1 to 1000.")
    assert hint("end") == "Above 0, up to 86400."
    form.run(
        """const s = document.querySelector('#field-end + select'); s.value = 'messages';
        s.dispatchEvent(new Event('input', { bubbles: true }))"""
    )
    form.wait(lambda: hint("end") == "From 1 to 9007199254740991.", "the range of messages")
    choose(form, "workload", "context-switch")
    assert hint("processes").endswith("From 2 to 64.") and hint("working_set").endswith("From 0 B to 1 MiB.")
    described = form.find("#field-warmup_seconds").get_attribute("aria-describedby")
    assert "field-warmup_seconds-hint" in described.split()
    assert violations(form) == []


def test_an_untouched_preset_is_posted_by_its_name_alone(form, daemon):
    for preset in daemon.get("/presets")["items"]:
        form.find(f"#field-preset option[value='{preset['name']}']").click()
        assert submitted(form) == {"preset": preset["name"]}
        assert json.loads(show_json(form)) == {"preset": preset["name"]}
        form.find("#tab-form").click()


def test_a_preset_is_the_same_experiment_by_the_form(form, daemon):
    form.find("#field-preset option[value=syscall-and-switch-quick]").click()
    assert "Up to 6 points, 6 runs" in form.text(".form-foot")
    form.find("form.panel .primary").click()
    form.wait(lambda: (form.text("main h1") or "").startswith("What a system call"), "the experiment's page")
    experiment = int(re.search(r"(\d+)$", form.driver.current_url)[1])
    by_hand = daemon.submit(preset="syscall-and-switch-quick")
    posted, wanted = (daemon.get(f"/experiments/{one}") for one in (experiment, by_hand))
    assert posted["spec"] == {"preset": "syscall-and-switch-quick"}
    assert posted["effective_spec"] == wanted["effective_spec"]
    for one in (by_hand, experiment):
        daemon.request("POST", f"/experiments/{one}/cancel")


def test_only_what_was_changed_is_posted_beside_a_preset(form):
    form.find("#field-preset option[value=fifo-numa]").click()
    form.fill("#field-repetitions", "6")
    assert submitted(form) == {"preset": "fifo-numa", "repetitions": 6}
    form.fill("#field-repetitions", "7")
    assert submitted(form) == {"preset": "fifo-numa"}
    balanced = {"kind": "default", "require": {"numa_balancing": True}}
    choose(form, "placement", "same-node", "default")
    assert submitted(form)["placement"] == ["same-node", balanced, {"kind": "same-cpu", "otherwise": True}, "default"]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: next(iter(spec)) + str(len(spec)))
def test_every_spec_opens_in_the_form_and_is_posted_unchanged(form, spec):
    enter(form, spec)
    assert submitted(form) == spec
    assert json.loads(show_json(form)) == spec


def test_what_has_no_field_is_a_chip_that_can_be_removed(form):
    enter(form, {"placement": ["same-node", PER_ROLE], "rate": 1000, "transport_options": {"pipe_size": 65536}})
    role, rate, options = chips(form)
    assert role and rate == "rate: 1000" and options == "transport options: pipe_size 65536"
    form.fill("#field-message_size", "64")
    remove(form, "[aria-label='Remove rate: 1000']")
    assert chips(form) == [role, options]
    assert form.focused().get_attribute("aria-label") == f"Remove {options}"
    assert submitted(form) == {
        "placement": ["same-node", PER_ROLE],
        "transport_options": {"pipe_size": 65536},
        "message_size": 64,
    }
    remove(form, f"[aria-label='Remove {role}']")
    assert submitted(form)["placement"] == "same-node"


def test_a_preset_without_a_part_of_it_is_posted_in_full(form, daemon):
    presets = {preset["name"]: preset["spec"] for preset in daemon.get("/presets")["items"]}
    form.find("#field-preset option[value=ipc-4mib-quick]").click()
    assert "chunk: true" in chips(form)
    remove(form, "[aria-label='Remove chunk: true']")
    assert form.find("#field-preset").get_property("value") == ""
    assert submitted(form) == {key: value for key, value in presets["ipc-4mib-quick"].items() if key != "chunk"}


def test_json_opens_beside_a_field_that_cannot_be_read(form):
    form.fill("#field-message_size", "12 parsecs")
    form.fill("#field-repetitions", "2")
    spec = json.loads(show_json(form))
    assert spec == {"message_size": [64, 1024, 4096, 65536], "duration_seconds": 5, "repetitions": 2}
    assert "12 parsecs" in form.text("#json-error")
    form.find("#tab-form").click()
    assert form.find("#field-message_size").get_property("value") == "12 parsecs"


@pytest.mark.parametrize("text", ["[]", "null", '{"preset": "of long ago"}', '{"message_size": "many"}'])
def test_what_is_no_spec_stays_as_json_with_the_reason(form, text):
    show_json(form)
    form.fill("#spec-json", text)
    form.find("#tab-form").click()
    assert form.find("#spec-json").is_displayed() and form.text("#json-error")
    assert form.find("#spec-json").get_property("value") == text


def test_again_posts_the_spec_to_the_letter(page, daemon):
    page.sign(daemon.token)
    body = '{"name": "A, \\"}: \\u00e9",  "rate": 1e3, "warmup_seconds":0.0, "duration_seconds": 0.20,\n"threads": [1]}'
    status, answer = exchange(daemon, "POST", "/experiments", body)
    assert status == 201
    first = json.loads(answer)["id"]
    daemon.wait(first)
    open_experiment(page, first)
    page.find("#again").click()
    page.wait(lambda: (found := re.search(r"/(\d+)$", page.driver.current_url)) and int(found[1]) > first, "the next")
    second = int(re.search(r"/(\d+)$", page.driver.current_url)[1])
    compact = '{"name":"A, \\"}: \\u00e9","rate":1e3,"warmup_seconds":0.0,"duration_seconds":0.20,"threads":[1]}'
    assert stored(daemon, first) == stored(daemon, second) == compact  # as posted, less the space between tokens
    daemon.wait(second)


def test_change_opens_the_form_with_the_spec(page, daemon):
    page.sign(daemon.token)
    spec = {"name": "To change", "placement": PER_ROLE, "rate": 500, "duration_seconds": 0.2, "warmup_seconds": 0}
    experiment = daemon.submit(**spec)
    daemon.wait(experiment)
    open_experiment(page, experiment)
    page.find("#change").click()
    page.wait_for("#field-message_size")
    assert "rate: 500" in chips(page)
    assert json.loads(show_json(page)) == spec
    page.find("#tab-form").click()
    page.fill("#field-message_size", "1 KiB")
    assert submitted(page) == spec | {"message_size": 1024}


@pytest.mark.parametrize("height", [500, 900])
def test_an_error_is_in_sight(form, height):
    """Neither under the form's foot nor outside the window."""
    form.size(360, height)
    form.expect_status(422)
    in_sight = """const box = arguments[0].getBoundingClientRect();
        const seen = document.elementFromPoint(box.left + 3, (box.top + box.bottom) / 2);
        return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight && arguments[0].contains(seen)"""
    for field, wrong in (("message_size", "many"), ("warmup_seconds", ""), ("repetitions", "")):
        good = form.find(f"#field-{field}").get_property("value")
        form.fill(f"#field-{field}", wrong)
        form.run("scrollTo(0, document.body.scrollHeight)")
        form.run("arguments[0].click()", form.find("form.panel .primary"))  # the preview may come and move it meanwhile
        error = form.find(f"#field-{field}-error")
        assert error.text and form.run(in_sight, error), field
        assert form.run(in_sight, form.focused()), field
        form.fill(f"#field-{field}", good)
    form.fill("#field-message_size", "2 GiB")
    form.find("form.panel .primary").click()
    error = form.find("#field-message_size-error")
    form.wait(lambda: error.text, "the refusal")
    assert form.run(in_sight, error)
    form.fill("#field-message_size", "64")
    form.run("scrollTo(0, 0)")
    form.run(RECORD)
    form.find("form.panel .primary").click()
    notice = form.find("form.panel [role=alert].notice")
    form.wait(lambda: notice.text == "Recorded.", "the refusal")
    assert form.run(in_sight, notice)
    show_json(form)
    form.fill("#spec-json", "[")
    form.find("#tab-form").click()
    assert form.run(in_sight, form.find("#json-error"))
