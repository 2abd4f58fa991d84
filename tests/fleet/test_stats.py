# SPDX-License-Identifier: MIT
"""The statistics of two samples: against what R and SciPy answer (tests/unit/data/statistics, beside the script that
made it, which the daemon's are held to as well), their properties, and by simulation."""

import math
import random

import conftest  # noqa: F401 - the path of the modules
import pytest
from conftest import LONG
from ipclab_fleet import stats
from ipclabtest import SOURCE

DATA = SOURCE / "tests/unit/data/statistics"
NEAR = {"rel": 1e-12, "abs": 1e-12}


def cases(name):
    for line in (DATA / f"{name}.txt").read_text().splitlines():
        if not line.startswith("#"):
            yield [float(word) for word in line.split()]


def check_shift(shift, estimate, low, high, level, near):
    assert shift.estimate == pytest.approx(estimate, **NEAR)
    if level == 0:
        assert (shift.low, shift.high, shift.level) == (None, None, None)
    else:
        assert (shift.low, shift.high) == (pytest.approx(low, **NEAR), pytest.approx(high, **NEAR))
        assert shift.level == pytest.approx(level, **near)


def test_rank_sum():
    exact = 0
    for n, m, *rest in cases("rank-sum"):
        n, m = int(n), int(m)
        x, y, (_, _, _, p, *shift) = rest[:n], rest[n : n + m], rest[n + m :]
        if n * m <= stats.EXACT:
            assert stats.rank_sum_p(x, y) == pytest.approx(p, **NEAR)
            check_shift(stats.rank_sum_shift(x, y, 0.95), *shift, NEAR)
            exact += 1
        else:
            assert stats.rank_sum_p(x, y) == pytest.approx(p, abs=3e-3)
            found = stats.rank_sum_shift(x, y, 0.95)
            assert found.estimate == pytest.approx(shift[0], **NEAR)
            assert found.level == pytest.approx(shift[3], abs=1e-3)
    assert exact == 491


def test_signed_rank():
    for n, *rest in cases("rank-signed"):
        differences, (_, _, _, p, *shift) = rest[: int(n)], rest[int(n) :]
        assert stats.signed_rank_p(differences) == pytest.approx(p, **NEAR)
        check_shift(stats.signed_rank_shift(differences, 0.95), *shift, NEAR)


def test_holm():
    for n, *rest in cases("multiple"):
        n = int(n)
        assert stats.holm(rest[:n]) == pytest.approx(rest[n : 2 * n], **NEAR)


def test_many_values_are_no_other_matter():
    """On both sides of the bound of counting, nearly the same comes out."""
    chance = random.Random(3)
    x, y = ([chance.gauss(at, 1) for _ in range(math.isqrt(stats.EXACT))] for at in (0, 0.4))
    q, beyond = stats.rank_sum_quantile(len(x), len(y), 0.025)
    p, shift = stats.rank_sum_p(x, y), stats.rank_sum_shift(x, y, 0.95)
    stats.EXACT -= 1
    try:
        near, level = stats.rank_sum_quantile(len(x), len(y), 0.025)
        assert abs(near - q) <= 1 and level == pytest.approx(beyond, abs=1e-3)
        assert stats.rank_sum_p(x, y) == pytest.approx(p, abs=3e-3)
        again = stats.rank_sum_shift(x, y, 0.95)
        assert again.estimate == shift.estimate and again.low == pytest.approx(shift.low, abs=0.02)
    finally:
        stats.EXACT += 1


def test_many_pairs_are_no_other_matter(monkeypatch):
    """Likewise; and a thousand, of which the exact distribution takes minutes, have an answer."""
    chance = random.Random(3)
    pairs = [chance.gauss(0.25, 1) for _ in range(stats.EXACT_PAIRS)]
    pairs[:20] = [round(value, 1) for value in pairs[:20]]  # ties
    p, shift = stats.signed_rank_p(pairs), stats.signed_rank_shift(pairs, 0.95)
    monkeypatch.setattr(stats, "EXACT_PAIRS", len(pairs) - 1)
    assert 0.001 < p < 0.3 and stats.signed_rank_p(pairs) == pytest.approx(p, abs=1e-3)
    again = stats.signed_rank_shift(pairs, 0.95)
    assert again.estimate == shift.estimate and again.level == pytest.approx(shift.level, abs=1e-3)
    assert (again.low, again.high) == (pytest.approx(shift.low, abs=0.01), pytest.approx(shift.high, abs=0.01))
    baseline = [chance.gauss(0, 1) for _ in range(1000)]
    candidate = [value + chance.gauss(math.log(0.95), 0.01) for value in baseline]
    (found,) = stats.compare([(baseline, candidate, True, True)])
    assert found.verdict == "slower" and found.interval[0] < 0.95 < found.interval[1]


def test_every_average_is_found():
    chance = random.Random(9)
    for _ in range(50):
        x = sorted(chance.choice([chance.random() - 0.5, 0.5, -0.5]) for _ in range(chance.randint(1, 9)))
        every = sorted((a + b) / 2 for i, a in enumerate(x) for b in x[i:])
        for k, value in enumerate(every):
            assert stats.kth_average(x, k) == pytest.approx(value, **NEAR)


def test_every_difference_is_found():
    chance = random.Random(8)
    for _ in range(50):
        x, y = (sorted(chance.choice([chance.random(), 0.5, 1]) for _ in range(chance.randint(1, 9))) for _ in "xy")
        every = sorted(a - b for a in x for b in y)
        for k, value in enumerate(every):
            assert stats.kth_difference(x, y, k) == pytest.approx(value, **NEAR)


def test_properties():
    """A change of scale, of the order, or of the sides."""
    chance = random.Random(4)
    x, y = ([chance.lognormvariate(0, 0.1) for _ in range(n)] for n in (7, 9))
    logs = [[math.log(v) for v in side] for side in (x, y)]
    scaled = [[math.log(8 * v) for v in side] for side in (x, y)]
    mixed = [chance.sample(side, len(side)) for side in logs]
    (plain,), (other,), (again,), (turned,) = (
        stats.compare([(*sides, False, True)]) for sides in (logs, scaled, mixed, logs[::-1])
    )
    assert (plain.p, plain.verdict) == (other.p, other.verdict) == (again.p, again.verdict)
    assert plain.ratio == pytest.approx(other.ratio) == pytest.approx(again.ratio)
    assert turned.p == plain.p and turned.ratio == pytest.approx(1 / plain.ratio)
    assert turned.interval == pytest.approx([1 / plain.interval[1], 1 / plain.interval[0]])


@pytest.mark.parametrize(
    "factor, more, verdict", [(1.1, True, "faster"), (1.1, False, "slower"), (0.9, True, "slower")]
)
def test_verdicts(factor, more, verdict):
    chance = random.Random(5)
    baseline = [chance.gauss(3, 0.01) for _ in range(10)]
    candidate = [chance.gauss(3 + math.log(factor), 0.01) for _ in range(10)]
    (found,) = stats.compare([(baseline, candidate, False, more)])
    assert found.verdict == verdict and found.interval[0] < factor < found.interval[1] and found.level >= 0.95
    paired = [(b, b + math.log(factor) + chance.gauss(0, 0.001)) for b in baseline]
    (found,) = stats.compare([(*map(list, zip(*paired, strict=True)), True, more)])
    assert found.verdict == verdict and found.ratio == pytest.approx(factor, rel=2e-3)
    (found,) = stats.compare([(baseline, [v + 0.002 for v in baseline], False, more)])
    assert found.verdict == "equivalent"
    (found,) = stats.compare([(baseline[:2], candidate[:2], False, more)])
    assert (found.verdict, found.interval, found.level) == ("undecided", None, None)
    (found,) = stats.compare([(baseline[:1] * 6, baseline[:1] * 6, False, more)])
    assert (found.verdict, found.ratio, found.p) == ("equivalent", 1, 1)


def test_equal_machines_are_rarely_told_apart():
    """A against A, 48 rows an answer of 8 skewed runs a side: at most 5 % of the answers have any that is faster or
    slower, give or take the chance of so many trials; and the intervals cover."""
    chance, answers = random.Random(6), 400 if LONG else 60
    alarms = covered = rows = 0
    for _ in range(answers):
        pairs = [
            tuple([chance.gauss(0, 0.05) + chance.expovariate(20) for _ in range(8)] for _ in "bc") + (False, True)
            for _ in range(48)
        ]
        found = stats.compare(pairs)
        alarms += any(ratio.verdict in ("faster", "slower") for ratio in found)
        covered += sum(ratio.interval[0] <= 1 <= ratio.interval[1] for ratio in found)
        rows += len(found)
    assert alarms <= 0.05 * answers + 2 * math.sqrt(0.05 * 0.95 * answers), (alarms, answers)
    assert covered >= 0.95 * rows - 2 * math.sqrt(0.05 * 0.95 * rows), (covered, rows)


def test_five_percent_is_found():
    """12 runs a side that differ by 3 %: with one row, 95 % of the slow-downs of 5 % are found."""
    chance, trials = random.Random(7), 600 if LONG else 200
    found = 0
    for _ in range(trials):
        sides = [[chance.gauss(at, 0.03) for _ in range(12)] for at in (0, math.log(0.95))]
        found += stats.compare([(*sides, False, True)])[0].verdict == "slower"
    assert found >= 0.95 * trials - 2 * math.sqrt(0.05 * 0.95 * trials), (found, trials)
