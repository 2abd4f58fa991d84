# SPDX-License-Identifier: MIT
"""The first page: what runs and what waits, which mechanism to take, where the CPUs are, the presets."""

import json
import re
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from answers import Answers
from axe import violations
from ipclabd import ENDLESS
from page import SCREENS


@pytest.fixture
def signed(unopened, daemon):
    unopened.sign(daemon.token)
    return unopened


def test_what_runs_and_what_waits_stand_on_top(signed, daemon, picture):
    page = signed
    page.open()
    ids = [
        daemon.submit(name=name, duration_seconds=30, warmup_seconds=0, repetitions=count, rate=10)
        for name, count in (("Running one", 72), ("First in the queue", 2), ("Second in the queue", 1))
    ]
    try:
        page.wait(lambda: re.search(r"run 1 of 72, ends \d\d:\d\d", page.text("#now") or ""), "the tile")
        assert "Running one" in page.text("#now .tile")
        page.wait(lambda: len(page.all("#now .queue li")) == 2, "the queue")
        first, second = [one.text for one in page.all("#now .queue li")]
        assert re.match(r"\d\d:\d\d\s+First in the queue\s+2 runs", first), first
        assert re.match(r"\d\d:\d\d\s+Second in the queue\s+1 run", second), second
        spans = """return [...document.querySelectorAll('#now .when .mark')].map((one) =>
            ['x', 'width'].map((name) => Number(one.getAttribute(name))))"""
        (begin, length), (then, _) = page.run(spans)
        assert begin == 0 and length == then and 50 < then < 80  # two runs, then one
        stroke = "return getComputedStyle(document.querySelector('#now .when .mark')).stroke"
        assert page.run(stroke) == "none"  # it would be stretched into the next one's time
        assert violations(page) == []
        picture("home")
        page.size(360, 900)
        assert page.run("return document.documentElement.scrollWidth") <= 360
    finally:
        for identity in reversed(ids):
            daemon.request("POST", f"/experiments/{identity}/cancel")
    page.wait(lambda: "Nothing runs" in page.text("#now"), "the end")


def item(transport, standing, value, age, **more):
    return {
        "point": {"workload": "pingpong", "transport": transport, "message_size": 4096},
        "settings": {},
        "standing": standing,
        "leads": standing == "best",
        "version": "0.1.0",
        "reason": None,
        "value": value,
        "unit": "ns",
        "interval": {"low": value * 0.95, "high": value * 1.05, "level": 0.96},
        "over_best": None,
        "fit": None,
        "experiment_id": 7,
        "measured_at": "2026-01-31T12:00:00.000Z",
        "age_seconds": age,
        "runs": 12,
        "noisy": False,
        "unsteady": False,
        "not_observed": False,
        "environment_changed": False,
        "buffer_bytes": None,
        "gathers": False,
        "neighbours_alike": False,
        "repetitions_added": 0,
        "runs_needed": None,
    } | more


WORDS = (
    "shm-posix has the lowest typical latency: 4.10 µs (3.90 µs to 4.30 µs). Of the others 1 is worse, 1 is undecided."
)
ADVICE = {
    "sentence": "pingpong, 4 KiB, 1 thread, same-node: shm-posix has the lowest median latency",
    "want": "latency_p50",
    "items": [
        item("shm-posix", "best", 4100, 3600),
        item("pipe", "worse", 9300, 7200, repetitions_added=2),
        item("tcp", "open", 15000, 60, reason="overlap", noisy=True),
    ],
    "next": None,
    "experiments": {"used": 3, "other_environment": 1, "open_loop_or_tuned": 0},
    "other_placements": [],
    "settle": {"transport": ["pipe", "tcp"]},
    "settle_seconds": 190,
}


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_a_newcomer_is_advised_which_mechanism(driver, signed, daemon, picture, width, scheme):
    page = signed
    answers = Answers(driver, {"/advice": []}, **{"/advice": ADVICE})
    try:
        page.size(width, 1200)
        page.media(scheme)
        page.open()
        page.wait_for("#ask").click()
        page.wait(lambda: page.text("#advice .advice") == WORDS, "the advice")
        rows = [one.text for one in page.all("#advice .ranked li")]
        assert [row.split()[0] for row in rows] == ["shm-posix", "pipe", "tcp"]
        assert "4.10 µs" in rows[0] and "1 h 00 min ago" in rows[0]
        assert "2 repetitions added · 2 h 00 min ago" in rows[1].replace("\n", " ")
        assert "added" not in rows[0] + rows[2]
        assert "cannot be told apart · noisy · 1 min 00 s ago" in rows[2].replace("\n", " ")
        hollow = "return [...document.querySelectorAll('#advice .mark')].map((one) => one.classList.contains('hollow'))"
        assert page.run(hollow) == [False, False, True]
        assert page.text("#settle") == "Measure now, 3 min 10 s"
        assert "dry_run" not in page.run("return requests.map(String).join()")  # which takes a token
        for part in ("svg", ".number", ".soft"):
            left = "return [...document.querySelectorAll(arguments[0])].map((one) => one.getBoundingClientRect())"
            boxes = page.run(left, f"#advice .ranked li > {part}")
            edge = "right" if part == ".number" else "left"
            assert len({round(box[edge]) for box in boxes}) == 1, part
        target = unquote(page.run("return requests.filter(([, target]) => target.startsWith('/advice')).at(-1)[1]"))
        question = {"message_size=4096", "workload=pingpong", "placement=same-node", "want=latency_p50"}
        assert set(target.split("?")[1].split("&")) == question
        assert "want=latency_p50" in page.driver.current_url
        assert violations(page) == []
        assert page.run("return document.documentElement.scrollWidth") <= width
        picture(f"advice-{width}-{scheme}")
        page.driver.refresh()
        page.wait(lambda: page.text("#advice .advice") == WORDS, "the advice of the address")
    finally:
        answers.remove()


def test_the_ranking_is_saved_with_what_it_rests_on(driver, signed, daemon):
    page = signed
    answers = Answers(driver, {"/advice": []}, **{"/advice": ADVICE | {"host": None, "settle": None}})
    try:
        page.open()
        page.wait_for("#ask").click()
        page.wait(lambda: page.all("#advice [data-key=export-svg]"), "the buttons")
        saved = ElementTree.fromstring(page.saved("SVG", "#advice"))
        words = " ".join(one.text for one in saved.iter("{http://www.w3.org/2000/svg}text"))
        assert words.startswith("Which mechanism? 4 KiB · round trip · two cores · typical latency")
        assert all(name in words for name in ("shm-posix", "pipe", "tcp", "4.10 µs", WORDS.partition(":")[0]))
        here = daemon.get("/environment")
        assert f"host {here['hostname']} · kernel {here['kernel_release']} · ipclab " in words
        marks = [one for one in saved.iter("{http://www.w3.org/2000/svg}path") if one.get("d").endswith("Z")]
        assert len({(one.get("stroke"), one.get("d")) for one in marks}) == len(ADVICE["items"])
        assert page.saved("PNG", "#advice").startswith(b"\x89PNG")
    finally:
        answers.remove()


def test_the_answer_to_the_last_question_stays(page):
    late, last = (ADVICE | {"items": [item(name, "best", 4100, 60)], "settle": None} for name in ("tcp", "pipe"))
    page.wait_for("#ask")
    page.run(
        """const real = window.fetch;
        const [late, last] = arguments;
        window.fetch = async (path, ...rest) => {
            const { pathname, searchParams } = new URL(path, location);
            if (pathname !== '/advice') return real(path, ...rest);
            const isLate = searchParams.get('want') === 'throughput';
            if (isLate) await new Promise((resolve) => { window.letItCome = resolve; });
            return new Response(JSON.stringify(isLate ? late : last));
        };""",
        late,
        last,
    )
    ask = """const select = document.getElementById('ask-want'); select.value = arguments[0];
        select.dispatchEvent(new Event('change'))"""
    page.run(ask, "throughput")
    page.wait(lambda: page.run("return Boolean(window.letItCome)"), "the first question")
    page.run(ask, "latency_p99")
    page.wait(lambda: page.text("#advice .ranked strong") == "pipe", "the answer to the second")
    page.run("window.letItCome()")
    page.call("await new Promise((resolve) => setTimeout(resolve, 300))")
    assert page.text("#advice .ranked strong") == "pipe"


def test_a_transport_looks_the_same_however_it_ranks(driver, signed):
    page = signed
    looks = """return Object.fromEntries([...document.querySelectorAll('#advice .ranked li')].map((one) => [
        one.querySelector('strong').textContent,
        `${one.querySelector('svg').getAttribute('class')} ${one.querySelector('.mark').getAttribute('d')}`]))"""
    names = ["tcp", "pipe", "shm-posix"]
    seen = []
    for order in (names, names[::-1], names[1:]):
        items = [item(name, "worse" if at else "best", 4100, 60) for at, name in enumerate(order)]
        answers = Answers(driver, {"/advice": []}, **{"/advice": ADVICE | {"items": items, "settle": None}})
        try:
            page.open()
            page.wait_for("#ask").click()
            page.wait(lambda order=order: len(page.all("#advice .ranked li")) == len(order), "the ranking")
            seen.append(page.run(looks))
        finally:
            answers.remove()
    assert len(set(seen[0].values())) == len(names)
    assert seen[1] == seen[0] and seen[2].items() <= seen[0].items()


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], "Nothing is known of this yet."),
        ([item("pipe", "excluded", 9300, 7200)], "Nothing that was measured is known to keep the limits."),
        (
            [item("pipe", "open", 9300, 7200, reason="interpolated")],
            "This size was not measured: the values are interpolated from other sizes.",
        ),
    ],
)
def test_advice_without_a_best_is_in_the_cards_words(driver, signed, items, words):
    advice = ADVICE | {"sentence": "pingpong, 4 KiB, 1 thread, same-node: no best", "items": items, "settle": None}
    answers = Answers(driver, {"/advice": []}, **{"/advice": advice})
    try:
        signed.open()
        signed.wait_for("#ask").click()
        signed.wait(lambda: signed.text("#advice .advice") == words, words)
    finally:
        answers.remove()


def test_a_leader_that_is_not_confirmed_is_no_best(driver, signed):
    items = [
        item("pipe", "open", 9300, 7200, reason="too-few-runs", leads=True, version="0.2.0"),
        item("tcp", "worse", 15000, 60),
    ]
    answers = Answers(driver, {"/advice": []}, **{"/advice": ADVICE | {"items": items}})
    try:
        signed.open()
        signed.wait_for("#ask").click()
        signed.wait(lambda: signed.all("#advice .ranked li"), "the advice")
        words = (
            "pipe leads with a typical latency of 9.30 µs (8.84 µs to 9.77 µs), which is not confirmed: too few runs. "
            "Of the others 1 is worse."
        )
        assert signed.text("#advice .advice") == words
        rows = [one.text for one in signed.all("#advice .ranked li")]
        assert "0.2.0" in rows[0] and "0.1.0" in rows[1], "their versions, as they differ"
    finally:
        answers.remove()


def test_a_placement_that_was_measured_is_a_press_away(driver, signed):
    nothing = ADVICE | {"items": [], "settle": None, "other_placements": ["default", "same-cpu"]}
    answers = Answers(driver, {"/advice": []}, **{"/advice": nothing})
    try:
        signed.open()
        signed.wait_for("#ask").click()
        buttons = signed.wait(lambda: signed.all("#advice [data-placement]"), "the other placements")
        assert [button.text for button in buttons] == ["anywhere", "one CPU"]
        buttons[1].click()
        asked = "return requests.filter(([, target]) => target.startsWith('/advice')).map(([, target]) => target)"
        signed.wait(lambda: "placement=same-cpu" in signed.run(asked)[-1], "the question with that placement")
        assert signed.focused().get_attribute("value") == "same-cpu"
    finally:
        answers.remove()


def test_streams_both_ways_at_once_are_asked_with_their_direction(page):
    """In the API it is a field of its own, both where it is asked and where it is settled."""
    page.wait_for("#ask")
    page.run(
        """const real = window.fetch;
        const [advice] = arguments;
        window.asked = [];
        window.fetch = async (path, options, ...rest) => {
            const { pathname, searchParams } = new URL(path, location);
            if (pathname !== '/advice') return real(path, options, ...rest);
            const isPost = options?.method === 'POST';
            window.asked.push(isPost ? JSON.parse(options.body) : Object.fromEntries(searchParams));
            if (isPost) return new Response('{"title": "refused"}', { status: 409 });
            return new Response(JSON.stringify(advice));
        };""",
        ADVICE,
    )
    ask = """const select = document.getElementById('ask-workload'); select.value = 'both';
        select.dispatchEvent(new Event('change'))"""
    page.run(ask)
    page.wait_for("#settle").click()
    page.wait(lambda: page.run("return window.asked.length") == 2, "the question, and what would settle it")
    question = {"workload": "stream", "direction": "both", "placement": "same-node", "want": "latency_p50"}
    got, posted = page.run("return window.asked")
    assert got == question | {"message_size": "4096"}
    assert posted == question | {"message_size": 4096}
    assert "workload=both" in page.driver.current_url


def test_a_size_of_the_address_stands_in_the_question(driver, signed):
    answers = Answers(driver, {"/advice": []}, **{"/advice": ADVICE})
    try:
        signed.open("#/?message_size=16384&workload=pingpong&placement=same-node&want=latency_p50")
        signed.wait(lambda: signed.text("#advice .advice") == WORDS, "the advice of the address")
        chosen = "const { options, selectedIndex } = document.getElementById('ask-message_size');" + (
            "return options[selectedIndex].text"
        )
        assert signed.run(chosen).split() == ["16", "KiB"]
    finally:
        answers.remove()


def test_a_transport_has_its_limits_in_units_and_its_reason_folded(page, daemon):
    page.wait(lambda: page.all("[aria-label=Transports] tbody tr"), "the transports")
    cells = """return [...document.querySelectorAll('[aria-label=Transports] tbody tr')].map((row) =>
        Object.fromEntries([...row.cells].map((cell) => [cell.dataset.title, cell.textContent])))"""
    rows = {row["Transport"]: row for row in page.run(cells)}
    pipe = next(item for item in daemon.get("/transports")["items"] if item["name"] == "pipe")
    assert pipe["capacity"]["limit"]["value"] == 2**20
    limits = "message_size of a spec, 1 GiB; a transfer by fs.pipe-max-size, 1 MiB"
    assert " ".join(rows["pipe"]["Limited by"].split()) == limits
    assert not any(re.search(r"\d{7}", row["Limited by"].replace("\u202f", "")) for row in rows.values())
    page.size(360, 900)
    inside = """const box = document.querySelector('[aria-label=Transports]');
        return box.scrollWidth <= box.clientWidth"""
    assert page.run(inside)
    reasons = daemon.get("/environment")["reasons"]
    folded = """return [...document.querySelectorAll('.facts details')].map((one) =>
        [one.open, one.firstChild.textContent])"""
    for is_open, words in page.run(folded):
        assert not is_open and words == "not available" and reasons


def test_two_cpus_are_a_placement(page, daemon):
    cpus = [cpu["id"] for cpu in daemon.get("/topology")["cpus"] if cpu["online"]]
    page.wait_for("#places .cpu")
    assert [int(one.get_attribute("data-cpu")) for one in page.all("#places .cpu")] == cpus
    for cpu in (cpus[0], cpus[-1]):
        page.run("document.querySelector(`[data-cpu='${arguments[0]}']`).click()", cpu)
    page.run("document.getElementById('place').click()")
    page.wait_for("#field-message_size")
    page.find("#tab-json").click()
    spec = json.loads(page.find("#spec-json").get_property("value"))
    assert spec == {"placement": {"sender": {"cpu": cpus[0]}, "receiver": {"cpu": cpus[-1]}}}


@pytest.mark.parametrize("width", [1280, 1279, 360])
def test_presets_are_open_where_there_is_room(unopened, daemon, width):
    """As cards below the advice and above the machine's places, with nothing of them loaded elsewhere."""
    page = unopened
    page.size(width, 900)
    page.open()
    page.wait_for("#presets summary")
    shown = page.run("return document.querySelector('#presets details').open")
    assert shown == (width == 1280)
    if shown:
        page.wait(lambda: len(page.all("#presets .card a.button")) == len(daemon.get("/presets")["items"]), "the cards")
        top = "return document.querySelector(arguments[0]).getBoundingClientRect().top"
        assert page.run(top, "#decision") < page.run(top, "#presets .card") < page.run(top, "#places")
    else:
        assert not page.find("#presets .card").is_displayed()


def test_a_preset_is_opened_from_its_card(page, daemon, picture):
    presets = daemon.get("/presets")["items"]
    page.wait_for("#presets summary")
    page.run("document.querySelector('#presets details').open = true")
    page.wait(lambda: len(page.all("#presets .card a.button")) == len(presets), "the cards")
    studies = [preset for preset in presets if preset["question"]]
    assert [one.text for one in page.all("#presets .card h3")] == [study["title"] for study in studies]
    assert [one.text for one in page.all("#presets .card .asks")] == [study["question"] for study in studies]
    for card, study in zip(page.all("#presets .card"), studies, strict=True):
        assert f"Expected: {study['expected']}" in card.text
        heights = """return [...arguments[0].querySelectorAll('.column')].map((bar) => [
            bar.querySelector('title').textContent, bar.height.baseVal.value])"""
        units = list(dict.fromkeys(one["unit"] for one in study["published"]))
        captions = [one.text for one in card.find_elements("css selector", "figcaption")]
        assert captions == ([f"Published, in {' and '.join(units)}"] if units else [])
        published = sorted(study["published"], key=lambda one: units.index(one["unit"]))
        most = {unit: max(one["value"] for one in published if one["unit"] == unit) for unit in units}
        for (title, height), one in zip(page.run(heights, card), published, strict=True):
            assert title.startswith(one["question"]) and title.endswith(one["unit"])
            assert height == pytest.approx(max(56 * one["value"] / most[one["unit"]], 1))
    assert violations(page) == []
    picture("presets")
    page.run("document.querySelector('[aria-label=\"Open the preset fifo-numa\"]').click()")
    page.wait_for("#field-message_size")
    assert page.find("#field-preset").get_property("value") == "fifo-numa"


def test_a_preset_has_its_time_here_and_its_last_result(driver, signed, daemon):
    page = signed
    one = {"workload": "stream", "transport": "pipe", "message_size": 64}
    identity = daemon.submit(preset="quick", messages=3000, warmup_seconds=0, name="Shortened", **one)
    daemon.wait_done(identity)
    sentence = "pipe and fifo are alike."
    finding = {"kind": "ranking", "sentence": sentence}
    target = f"/experiments/{identity}/findings"
    answers = Answers(driver, {}, **{target: {"items": [{"kind": "undecided", "sentence": "no"}, finding]}})
    try:
        page.open()
        page.wait_for("#presets summary")
        page.run("document.querySelector('#presets details').open = true")
        card = "//*[@id='presets']//article[.//a[@aria-label='Open the preset {}']]"
        of = lambda name: page.driver.find_elements("xpath", card.format(name))  # noqa: E731
        page.wait(lambda: of("quick"), "the cards")
        link = of("quick")[0].find_element("css selector", f"a[href='#/experiments/{identity}']")
        assert target not in page.run("return requests.map(String).join()")
        page.run("arguments[0].scrollIntoView()", link)
        page.wait(lambda: sentence in of("quick")[0].text, "the last finding, in sight")
        assert re.search(r"Took .* here\.", of("quick")[0].text)
        assert link.is_displayed()
        assert re.search(r"Takes about .* here\.", of("tcp-copy-modes")[0].text)
        assert "Last result" not in of("tcp-copy-modes")[0].text
    finally:
        answers.remove()


def noise(*shares, reason=None):
    """An answer of GET /noise with (foreign, steal) of each CPU."""
    cpus = [{"id": at, "foreign": foreign, "steal": steal} for at, (foreign, steal) in enumerate(shares)]
    load = sum(foreign for foreign, _ in shares) if not reason else None
    return {"every_seconds": 5, "age_seconds": 1, "window_ns": 5 * 10**9, "cpus": cpus, "load": load, "reason": reason}


@pytest.mark.parametrize(
    ("given", "quiet", "words"),
    [
        (noise((0.005, 0), (0.02, 0)), True, "Yes: nothing here would flag a run."),
        (noise((0, 0), (0.2, 0)), False, "Not now: other programs take 20 % of CPU 1."),
        (
            noise((0.4, 0.02), (0.2, 0)),
            False,
            "Not now: other programs take 40 % of CPU 0; other guests take 2.0 % of CPU 0; 0.60 CPUs are at work.",
        ),
        (noise(reason="the daemon has not looked twice yet"), None, "The daemon has not looked twice yet."),
        (noise((0, 0), reason="a CPU was not listed"), None, "A CPU was not listed."),
        (noise((0.2, 0), reason="a CPU was not listed"), False, "Not now: other programs take 20 % of CPU 0."),
    ],
)
def test_quiet_is_what_would_flag_no_run(modules, given, quiet, words):
    script = """const { quietWords } = await import('/assets/home/quiet.js');
        const { quiet, words } = quietWords(args[0], [0.1, 0.2, 0.3]);
        return [quiet, words]"""
    assert modules.call(script, given) == [quiet, words]


def test_the_first_page_answers_whether_it_is_quiet(signed, daemon, picture):
    page = signed
    page.open()
    answered = lambda: page.run("return document.querySelector('#quiet .answer')?.dataset.quiet")  # noqa: E731
    page.wait(lambda: answered() in ("true", "false"), "what the daemon saw")
    assert re.match("Yes: |Not now: ", page.text("#quiet .answer"))
    facts = [one.text for one in page.all("#quiet dt")]
    assert facts == ["foreign CPU", "steal", "at work", "watched", "load"]
    assert re.match(r"[\d.]+ % of CPU \d+, the busiest", page.text("#quiet dd"))
    picture("quiet")
    identity = daemon.submit(**ENDLESS)
    try:
        page.wait(lambda: page.all("#now .tile"), "the run")
        page.wait(lambda: "An experiment runs" in page.text("#quiet .answer"), "no look beside a run")
    finally:
        daemon.request("POST", f"/experiments/{identity}/cancel")
    page.wait(lambda: answered() in ("true", "false"), "what the daemon saw after the run")
