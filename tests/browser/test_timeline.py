# SPDX-License-Identifier: MIT
"""The runs in time, with what disturbed them: made-up runs of which every mark is known, and runs of this machine."""

from datetime import UTC, datetime, timedelta

import pytest
from answers import Answers
from axe import violations
from documents import experiment
from page import SCREENS
from selenium.webdriver.common.keys import Keys

GIVEN = 900002
BEGIN = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
POINT = {"workload": "stream", "transport": "pipe", "message_size": 4096, "threads": 1}


def at(seconds):
    return (BEGIN + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def second(n, foreign, steal, standstill):
    """`steal` of the CPU with the most; of all that are measured it is half as much. The flags are the daemon's."""
    over = {"noisy:foreign-cpu": foreign >= 0.05, "noisy:steal": steal >= 0.05, "noisy:standstill": standstill >= 0.6}
    shares = {"foreign_share": foreign, "softirq_share": 0, "steal_share": steal / 2, "worst_steal_share": steal}
    shares |= {"sibling_share": 0, "daemon_share": 0, "worst_standstill_share": standstill}
    flags = [flag for flag, one in over.items() if one]
    return {"second": n, "begin_ns": 10**9 * (n + 5), "interval_ns": 10**9, "cpu": 0, "flags": flags} | shares


def run(
    id, start, *, flags=(), foreign=0.01, steal=0.0, changes=(), steady_from=0.0, standstill=0.0, khz=None, state="done"
):
    """Half a second of warm-up and three seconds of window."""
    noise = {
        "begin_ns": 5 * 10**9,
        "begin_unix_ms": 0,
        "worst": {"cpu": 0, "second": 1, "foreign_share": foreign},
        "load_cpus": foreign,
        "slowest_khz": khz,
        "fastest_khz": khz,
        "seconds": [second(n, foreign if n == 1 else 0.01, steal, standstill) for n in range(3)],
    }
    series = {
        "figure": "messages_per_second",
        "steady_from_seconds": steady_from,
        "changes": [{"at_seconds": one, "second": int(one)} for one in changes],
    }
    result = {
        "begun_at": at(start + 0.5),
        "window_ns": 3 * 10**9,
        "throughput_bytes_per_second": 1e9,
        "noise": noise,
        "steadiness": [series],
    }
    return {
        "id": id,
        "experiment_id": GIVEN,
        "point": POINT,
        "repetition": id,
        "position": id - 1,
        "state": state,
        "attempt": 1,
        "error": None if state == "done" else "the agents left",
        "flags": list(flags),
        "agents": [],
        "result": result if state == "done" else None,
        "started_at": at(start),
        "finished_at": at(start + 3.6),
    }


RUNS = [
    run(1, 0),
    run(2, 4, flags=["noisy:foreign-cpu"], foreign=0.4, steal=0.04, changes=[1.5]),
    run(3, 8, steal=0.06, steady_from=1.0),
    run(4, 7200, state="failed"),  # two hours later
]
ROW = {
    "point": POINT,
    "runs": 3,
    "runs_planned": 4,
    "runs_failed": 1,
    "run_ids": [1, 2, 3],
    "throughput_bytes_per_second": {"n": 3, "median": 1e9, "min": 9e8, "max": 1.1e9, "ci95": None, "level": None},
    "flags": ["noisy:foreign-cpu"],
    "error": None,
    "effective": {},
}

# The words that do not lie within the drawing.
OUTSIDE = """const box = document.querySelector('#timeline svg').getBoundingClientRect();
    return [...document.querySelectorAll('#timeline svg text')].map((text) => [text.textContent,
        text.getBoundingClientRect()]).filter(([, one]) => one.left < box.left - 1 || one.right > box.right + 1)
        .map(([words]) => words)"""


@pytest.fixture
def show(driver, unopened):
    given = []

    def open_runs(runs=RUNS):
        given.append(Answers(driver, {}, **experiment(GIVEN, [ROW], runs)))
        unopened.open(f"#/experiments/{GIVEN}")
        unopened.wait(lambda: len(unopened.all("#timeline .run")) == len(runs), "the runs in time")
        return unopened

    yield open_runs
    for one in given:
        one.remove()


def boxes(page, selector):
    script = """return [...document.querySelectorAll(arguments[0])].map((one) =>
        ['x', 'width'].map((name) => Number(one.getAttribute(name))))"""
    return page.run(script, f"#timeline {selector}")


def test_runs_lie_in_time_with_their_warm_up_and_without_the_pauses(show):
    page = show()
    runs = boxes(page, ".span")
    shaded = boxes(page, ".warm-up")
    assert len(runs) == 4 and len(shaded) == 3  # of the failed one no window is known
    per_second = runs[0][1] / 3
    assert abs(shaded[0][1] - per_second / 2) < per_second / 10
    assert abs(shaded[2][1] - per_second * 1.5) < per_second / 10  # it became steady a second into its window
    assert shaded[0][0] + shaded[0][1] == pytest.approx(runs[0][0])
    assert runs[1][0] - runs[0][0] == pytest.approx(4 * per_second, rel=0.02)
    gap = runs[3][0] - (runs[2][0] + runs[2][1])
    assert per_second < gap < 4 * per_second  # not two hours
    states = page.run("return [...document.querySelectorAll('#timeline .run')].map((one) => one.dataset.state)")
    assert states == ["done", "done", "done", "failed"]


def test_each_disturbance_has_a_track_and_what_is_flagged_stands_out(show):
    page = show()
    assert page.find("#timeline").get_attribute("data-tracks") == "Foreign CPU, Steal, Other load"
    counts = """return [...document.querySelectorAll('#timeline .track')].map((one) => [one.dataset.track,
        one.querySelectorAll('.amount').length, one.querySelectorAll('.amount.over').length])"""
    assert page.run(counts) == [["Foreign CPU", 9, 1], ["Steal", 9, 3], ["Other load", 3, 0]]
    assert len(page.all("#timeline .flag-mark")) == 1 and len(page.all("#timeline .change")) == 1
    page = show([run(1, 0, khz=2_100_000), run(2, 4, khz=3_600_000)])
    assert page.find("#timeline").get_attribute("data-tracks").endswith("Clock")
    assert "GHz" in page.run("return document.querySelector('#timeline [data-track=Clock]').textContent")


def test_a_stop_and_what_was_sent_again_are_in_their_second(show):
    """In tracks that are shown where there is one, also beside runs of earlier versions, which do not say when."""
    one = run(2, 4, flags=["noisy:stopped", "noisy:retransmits"])
    one["result"]["noise"]["seconds"][0] |= {"stopped_ns": 0, "retransmitted_segments": 1}
    one["result"]["noise"]["seconds"][1] |= {"stopped_ns": 300_000_000, "flags": ["noisy:stopped"]}
    one["result"]["noise"]["seconds"][2] |= {"retransmitted_segments": 12, "flags": ["noisy:retransmits"]}
    page = show([run(1, 0), one])
    tracks = "Foreign CPU, Steal, Stopped, Sent again, Other load"
    assert page.find("#timeline").get_attribute("data-tracks") == tracks
    counts = """return ['Stopped', 'Sent again'].map((name) => document.querySelector(`[data-track="${name}"]`))
        .map((one) => ['.amount', '.amount.over'].map((of) => one.querySelectorAll(of).length))"""
    assert page.run(counts) == [[2, 1], [2, 1]]
    assert " ms" in page.text("#timeline") and " segments" in page.text("#timeline")


def test_a_standstill_is_marked_where_the_daemon_flags_it(show):
    """Ticks miss up to half of each second where tasks sleep in step with them."""
    in_step = run(1, 0, standstill=0.47)
    page = show([in_step])
    assert page.find("#timeline").get_attribute("data-tracks") == "Foreign CPU, Steal, Other load"
    over = "return document.querySelectorAll('#timeline [data-track=Standstill] .amount.over').length"
    worse = run(2, 4, standstill=0.1, flags=["noisy:standstill"])  # by more than 30 points than its best second
    worse["result"]["noise"]["seconds"][2] |= {"worst_standstill_share": 0.41, "flags": ["noisy:standstill"]}
    page = show([in_step, worse])
    assert page.find("#timeline").get_attribute("data-tracks") == "Foreign CPU, Steal, Standstill, Other load"
    assert page.run(over) == 1
    assert "30 points" in page.text("#timeline")
    bare = run(3, 8, standstill=0.7)
    for one in bare["result"]["noise"]["seconds"]:
        del one["flags"]
    page = show([in_step, bare])
    assert page.run(over) == 3


def test_what_a_second_is_flagged_by_is_drawn(show):
    """The softirqs of the CPU with the most of them, and the load of the second; an earlier run has other figures."""
    now = run(1, 0, flags=["noisy:softirq", "noisy:load"])
    one = now["result"]["noise"]["seconds"][1]
    one |= {"softirq_share": 0.01, "worst_softirq_share": 0.06, "load_cpus": 0.9}
    one["flags"] = ["noisy:softirq", "noisy:load"]
    now["result"]["noise"]["worst_load_cpus"] = 0.9
    earlier = run(2, 4)
    page = show([now, earlier])
    assert page.find("#timeline").get_attribute("data-tracks") == "Foreign CPU, Steal, Softirq, Other load"
    assert page.run("return document.querySelectorAll('#timeline .amount.over').length") == 2
    page.tab_to("#timeline .drawing")
    page.keys(Keys.ARROW_RIGHT)
    assert "other load up to 0.900 CPUs" in page.text("#timeline .readout")
    page.keys(Keys.ARROW_RIGHT)
    assert "other load 0.0100 CPUs" in page.text("#timeline .readout")


def test_packets_and_interrupts_have_their_tracks(show):
    """Each where it is the cause: a flag that has several is none of the others'."""
    tracks = "return document.getElementById('timeline').dataset.tracks.split(', ').slice(2, -1)"
    causes = {
        "Packets": ("noisy:softirq", "foreign_packets_per_second", 60_000),
        "In interrupts": ("noisy:interrupts", "worst_irq_share", 0.08),
        "Interrupts": ("noisy:interrupts", "device_interrupts_per_second", 3000),
    }
    quiet = {"foreign_packets_per_second": 10, "worst_irq_share": 0.01, "device_interrupts_per_second": 200}
    for title, (flag, name, value) in causes.items():
        one = run(1, 0, flags=[flag])
        for second in one["result"]["noise"]["seconds"]:
            second |= quiet
        one["result"]["noise"]["seconds"][1] |= {name: value, "flags": [flag]}
        page = show([one])
        assert [track for track in page.run(tracks) if track != "Softirq"] == [title]
        assert page.run(OUTSIDE) == []
        drawn = f"return document.querySelectorAll('#timeline [data-track=\"{title}\"] .amount')"
        assert page.run(f"{drawn}.length") == 3
        assert (
            page.run(f"return document.querySelectorAll('#timeline [data-track=\"{title}\"] .amount.over').length") == 1
        )
    still = run(1, 0)
    for second in still["result"]["noise"]["seconds"]:
        second |= quiet
    assert show([still]).run(tracks) == []


def test_runs_are_read_out_by_keys(show, picture):
    page = show()
    page.tab_to("#timeline .drawing")
    page.keys(Keys.ARROW_RIGHT)
    assert page.text("#timeline .readout").startswith("Run 1")
    page.keys(Keys.ARROW_RIGHT)
    readout = page.text("#timeline .readout")
    assert (
        "foreign CPU up to 40.0 %" in readout
        and "level changed at second 1.5" in readout
        and "noisy:foreign-cpu" in readout
    )
    page.keys(Keys.END)
    assert page.text("#timeline .readout").endswith("the agents left")
    page.expect_status(404)  # no daemon has the run
    page.keys(Keys.ENTER)
    page.wait(lambda: page.find("#run-dialog").is_displayed(), "the run")
    assert page.text("#run-title") == "Run 4"
    page.keys(Keys.ESCAPE)


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_time_line_fits_every_screen(show, picture, scheme, width):
    page = show()
    page.size(width, 900)
    page.media(scheme)
    page.wait(lambda: page.run("return document.documentElement.scrollWidth <= innerWidth"), "nothing to the side")
    page.wait(lambda: page.run(OUTSIDE) == [], "all words within the frame")
    page.run("document.getElementById('timeline').scrollIntoView()")
    picture(f"timeline-{width}-{scheme}")
    assert violations(page) == []


def test_runs_of_this_machine_have_their_tracks(page, daemon):
    identity = daemon.submit(message_size=64, repetitions=3, duration_seconds=1, warmup_seconds=0.3, rate=1000)
    daemon.wait_done(identity)
    page.go(f"#/experiments/{identity}")
    page.wait(lambda: len(page.all("#timeline .run")) == 3, "the runs in time")
    runs = daemon.get(f"/experiments/{identity}/runs")["items"]
    seconds = sum(len(run["result"]["noise"]["seconds"]) for run in runs if run["result"]["noise"])
    drawn = "return document.querySelectorAll('#timeline [data-track=\"Foreign CPU\"] .amount').length"
    assert page.run(drawn) == seconds > 0
    assert len(boxes(page, ".warm-up")) == 3
