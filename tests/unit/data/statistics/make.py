#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the data that daemon/analysis is checked against: cases, and what other programs answer to them.

Needs R with the package coin (Debian 12: r-base-core, r-cran-coin), and from PyPI numpy==2.4.6, scipy==1.17.1 and
ruptures==1.1.10; what made a file stands in its first lines. The unit tests need none of these. All files take some
minutes. Usage: make.py [NAME...]

A line is a case: its numbers one after the other, in the order that the file's head gives. Values of the cases have few
digits, so that C, Python and R read the same double; answers have all of theirs.
"""

import itertools
import math
import platform
import random
import subprocess
import sys
import tempfile
import textwrap
from fractions import Fraction
from pathlib import Path

import numpy
import ruptures
import scipy
from scipy import optimize, stats

HERE = Path(__file__).parent
CASES = 500


def run_r(script, lines):
    """What an R script, which reads a case a line from `path`, prints."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as cases:
        cases.write("\n".join(lines) + "\n")
        cases.flush()
        program = f'path <- "{cases.name}"; options(digits = 17)\n{script}'
        answer = subprocess.run(["Rscript", "-e", program], check=True, capture_output=True, text=True)
    return answer.stdout.split("\n")[:-1]


def r_version(package=None):
    expression = f'as.character(packageVersion("{package}"))' if package else "R.version.string"
    return subprocess.run(
        ["Rscript", "-e", f"cat({expression})"], check=True, capture_output=True, text=True
    ).stdout.strip()


def text_of(values):
    return " ".join(repr(float(v)).removesuffix(".0") for v in values)


def write(name, made_by, head, lines):
    versions = {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "ruptures": ruptures.__version__,
    }
    versions |= {"R": r_version(), "coin": r_version("coin")} if "R" in made_by or "coin" in made_by else {}
    by = ", ".join(versions[one] if one == "R" else f"{one} {versions[one]}" for one in made_by)
    comments = [
        f"# {line}" for line in textwrap.wrap(f"Made by make.py with {by}. {' '.join(' '.join(head).split())}", 118)
    ]
    (HERE / f"{name}.txt").write_text("\n".join([*comments, *lines]) + "\n")


def draw(rng, n, tied):
    """Skewed values of four digits; tied ones of few."""
    if tied:
        return [float(rng.randint(1, max(2, n))) / 4 for _ in range(n)]
    return [round(math.exp(rng.gauss(3, 0.7)), 4) for _ in range(n)]


def size(rng, i):
    return rng.randint(100, 200) if i % 50 == 0 else rng.randint(1, 30)


# ---- rank tests


def midranks(values):
    """Doubled, in the order of the values."""
    return [int(2 * r) for r in stats.rankdata(values)]


def ways_of_sums(ranks, n):
    """How many choices of n ranks have each sum: integers without rounding, all of one n packed into one."""
    width = len(ranks) // 8 + 1  # bytes; there are fewer than 2^len(ranks) choices
    ways = [1] + [0] * n
    for done, rank in enumerate(ranks):
        for k in range(min(done, n - 1), -1, -1):
            ways[k + 1] += ways[k] << (8 * width * rank)
    packed = ways[n].to_bytes(width * (sum(sorted(ranks)[-n:]) + 1), "little")
    counts = (int.from_bytes(packed[at : at + width], "little") for at in range(0, len(packed), width))
    return {s: count for s, count in enumerate(counts) if count}


def ways_of_signs(ranks):
    ways = {0: 1}
    for rank in ranks:
        more = dict(ways)
        for s, count in ways.items():
            more[s + rank] = more.get(s + rank, 0) + count
        ways = more
    return ways


def tails(ways, observed):
    total = sum(ways.values())
    less = sum(count for s, count in ways.items() if s <= observed)
    greater = sum(count for s, count in ways.items() if s >= observed)
    two = min(Fraction(1), 2 * min(Fraction(less, total), Fraction(greater, total)))
    return [float(Fraction(less, total)), float(Fraction(greater, total)), float(two)]


def differs(a, b):
    return not math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-13)


R_UNTIED_SUM = """
for (line in readLines(path)) {
  v <- scan(text = line, quiet = TRUE); n <- v[1]; m <- v[2]
  x <- v[3:(2 + n)]; y <- v[(3 + n):(2 + n + m)]
  a <- suppressWarnings(wilcox.test(x, y, exact = TRUE, conf.int = TRUE, conf.level = 0.95))
  p <- sapply(c("less", "greater"), function(s) wilcox.test(x, y, exact = TRUE, alternative = s)$p.value)
  cat(a$statistic, p, a$p.value, a$estimate, a$conf.int[1], a$conf.int[2], attr(a$conf.int, "conf.level"), "\\n")
}"""

R_UNTIED_SIGNED = """
for (line in readLines(path)) {
  v <- scan(text = line, quiet = TRUE); d <- v[-1]
  a <- suppressWarnings(wilcox.test(d, exact = TRUE, conf.int = TRUE, conf.level = 0.95))
  p <- sapply(c("less", "greater"), function(s) wilcox.test(d, exact = TRUE, alternative = s)$p.value)
  cat(a$statistic, p, a$p.value, a$estimate, a$conf.int[1], a$conf.int[2], "\\n")
}"""

R_TIED_SUM = """
suppressMessages(library(coin))
for (line in readLines(path)) {
  v <- scan(text = line, quiet = TRUE); n <- v[1]; m <- v[2]
  d <- data.frame(v = v[-(1:2)], g = factor(rep(c("x", "y"), c(n, m))))
  p <- sapply(c("less", "greater"), function(s)
    as.numeric(pvalue(wilcox_test(v ~ g, data = d, distribution = "exact", alternative = s))))
  cat(p, "\\n")
}"""


def shift_by_definition(differences, q_of, level=0.95):
    """Hodges-Lehmann and the interval between order statistics; q_of(tail) gives the rank and what is beyond it."""
    ordered = sorted(differences)
    q, beyond = q_of((1 - level) / 2)
    if q == 0:
        return [float(numpy.median(ordered)), 0, 0, 0]
    return [float(numpy.median(ordered)), ordered[q - 1], ordered[-q], 1 - 2 * beyond]


def quantile_of(ways, tail):
    """The greatest q with P(S < q) <= tail and that probability, from exact counts."""
    total, below, q, limit = sum(ways.values()), 0, 0, Fraction(tail)
    while (below + ways.get(q, 0)) * limit.denominator <= total * limit.numerator:
        below += ways.get(q, 0)
        q += 1
    return q, float(Fraction(below, total))


def gaussian_ways(n, m):
    ways = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for s in range(n * m, m + i - 1, -1):
            ways[s] -= ways[s - m - i]
        for s in range(i, n * m + 1):
            ways[s] += ways[s - i]
    return dict(enumerate(ways))


def make_rank_sum():
    rng = random.Random(1)
    cases = []
    for i in range(CASES):
        n, m = [(200, 200), (100, 100)][i] if i < 2 else (size(rng, i), size(rng, i + 25))
        tied = i % 2 == 1
        x, y = draw(rng, n, tied), draw(rng, m, tied)
        if i % 3 == 0:
            x = [round(v * 1.4, 4) for v in x]
        cases.append((x, y, len(set(x + y)) < n + m))
    inputs = [f"{len(x)} {len(y)} {text_of(x + y)}" for x, y, _ in cases]
    for_r = [not tied and len(x) * len(y) <= 6000 for x, y, tied in cases]  # its memory grows with the square of that
    from_r = iter(run_r(R_UNTIED_SUM, [t for t, r in zip(inputs, for_r, strict=True) if r]))
    small = [c[2] and len(c[0]) + len(c[1]) <= 60 and len(set(c[0] + c[1])) > 1 for c in cases]
    from_coin = iter(run_r(R_TIED_SUM, [t for t, s in zip(inputs, small, strict=True) if s]))
    held, lines = {"R": 0, "coin": 0, "integers": 0, "scipy": 0}, []
    for (x, y, tied), text, by_coin, by_r in zip(cases, inputs, small, for_r, strict=True):
        n, m = len(x), len(y)
        u = sum((a > b) + (a == b) / 2 for a in x for b in y)
        untied = gaussian_ways(n, m)
        shift = shift_by_definition([a - b for a in x for b in y], lambda tail, ways=untied: quantile_of(ways, tail))
        if not tied and not by_r:
            p = tails(untied, u)
            held["integers"] += 1
        elif tied:
            ranks = midranks(x + y)
            p = tails(ways_of_sums(ranks, n), sum(ranks[:n]))
            held["integers"] += 1
            if by_coin:
                theirs = [float(v) for v in next(from_coin).split()]
                assert not any(map(differs, p[:2], theirs)), (text, p, theirs)
                held["coin"] += 1
            if min(n, m) > 1 and math.comb(n + m, n) < 3000:
                method = stats.PermutationMethod(n_resamples=numpy.inf)
                theirs = stats.mannwhitneyu(x, y, method=method).pvalue
                assert not differs(p[2], theirs), (text, p, theirs)
                held["scipy"] += 1
        else:
            w, *p, estimate, low, high, _ = (float(v) for v in next(from_r).split())
            assert w == u and not differs(shift[0], estimate), (text, u, w, shift, estimate)
            if shift[3]:
                assert not differs(shift[1], low) and not differs(shift[2], high), (text, shift, low, high)
            shift[0] = estimate
            theirs = stats.mannwhitneyu(x, y, method="exact").pvalue
            assert not differs(p[2], theirs), (text, p, theirs)
            held["R"] += 1
            held["scipy"] += 1
        lines.append(f"{text} {text_of([u, *p, *shift])}")
    write(
        "rank-sum",
        ["R", "coin", "scipy", "python"],
        [
            f"""
            A line: n m, n values of x, m of y; U, p less, p greater, p two-sided; shift, and low, high and level of
            its interval of 95 % (0: none). Without ties p and shift are those of R's wilcox.test(exact = TRUE,
            conf.int = TRUE) ({held["R"]} cases), and scipy's mannwhitneyu(method = 'exact') agrees. With ties,
            where R falls back to the normal distribution, p is counted in integers over all assignments of the
            midranks ({held["integers"]} cases, one of them without ties and too large for R); coin's exact
            distribution agrees in all {held["coin"]} of up to 60 values, scipy's full permutation in those that it
            can list. The interval with ties is that of the definition, between the order statistics that the
            distribution without ties chooses.
            """,
        ],
        lines,
    )


def make_rank_signed():
    rng = random.Random(2)
    cases = []
    for i in range(CASES):
        n = 200 if i == 0 else size(rng, i)
        if i % 2:
            d = [float(rng.randint(-n, n + 2)) / 4 for _ in range(n)]
        else:
            d = [round(rng.gauss(0.4, 1.0), 5) or 0.5 for _ in range(n)]
        cases.append((d, len({abs(v) for v in d}) < n or 0 in d))
    inputs = [f"{len(d)} {text_of(d)}" for d, _ in cases]
    from_r = iter(run_r(R_UNTIED_SIGNED, [t for t, c in zip(inputs, cases, strict=True) if not c[1]]))
    held, lines = {"R": 0, "integers": 0, "scipy": 0}, []
    for (d, tied), text in zip(cases, inputs, strict=True):
        used = [v for v in d if v != 0]
        ranks = midranks([abs(v) for v in used])
        v = sum(r for r, one in zip(ranks, used, strict=True) if one > 0)
        p = tails(ways_of_signs(ranks), v)
        walsh = [a / 2 + b / 2 for a, b in itertools.combinations_with_replacement(d, 2)]
        untied = ways_of_signs(range(1, len(d) + 1))
        shift = shift_by_definition(walsh, lambda tail, ways=untied: quantile_of(ways, tail))
        if tied:
            held["integers"] += 1
            if 1 < len(used) <= 11:
                method = stats.PermutationMethod(n_resamples=numpy.inf)
                theirs = stats.wilcoxon(used, method=method).pvalue
                assert not differs(p[2], theirs), (text, p, theirs)
                held["scipy"] += 1
        else:
            w, *p, estimate, low, high = (float(one) for one in next(from_r).split())
            assert w == v / 2 and not differs(shift[0], estimate), (text, v / 2, w)
            if shift[3]:
                assert not differs(shift[1], low) and not differs(shift[2], high), (text, shift, low, high)
            theirs = stats.wilcoxon(d, method="exact").pvalue
            assert not differs(p[2], theirs), (text, p, theirs)
            held["R"] += 1
        lines.append(f"{text} {text_of([v / 2, *p, *shift])}")
    write(
        "rank-signed",
        ["R", "scipy", "python"],
        [
            f"""
            A line: n, n differences; V, p less, p greater, p two-sided; shift, and low, high and level of its
            interval of 95 % (0: none). Without ties and zeros p is that of R's wilcox.test(exact = TRUE, conf.int =
            TRUE) ({held["R"]} cases), which gives the same shift and interval; scipy's wilcoxon(method = 'exact')
            agrees. With ties or zeros, which are left out, where R falls back to the normal distribution and
            scipy's 'exact' to that without ties, p is counted in integers over all signs of the midranks
            ({held["integers"]} cases); scipy's full permutation agrees in the {held["scipy"]} that it can list.
            """,
        ],
        lines,
    )


# ---- order statistics and p values of many tests


R_QUANTILE = """
for (line in readLines(path)) {
  v <- scan(text = line, quiet = TRUE); n <- v[1]
  cat(quantile(v[3:(2 + n)], v[2], type = 1), "\\n")
}"""


def make_order():
    rng = random.Random(3)
    cases = []
    for i in range(CASES):
        n = rng.randint(200, 400) if i % 50 == 0 else rng.randint(1, 60)
        p = rng.choice([0.5, 0.5, 0.5, 0.9, 0.99, 0.25, 0.07, 0.7, 0.1])
        cases.append((n, p, draw(rng, n, i % 2 == 1)))
    inputs = [f"{n} {p} {text_of(values)}" for n, p, values in cases]
    lines = []
    for (n, p, values), text, r in zip(cases, inputs, run_r(R_QUANTILE, inputs), strict=True):
        ordered, quantile = sorted(values), float(r)
        low, high = int(stats.binom.ppf(0.025, n, p)), n - int(stats.binom.ppf(0.025, n, 1 - p)) + 1
        if low < 1 or high > n:
            lines.append(f"{text} {text_of([quantile, 0, 0, 0])}")
            continue
        level = stats.binom.cdf(high - 1, n, p) - stats.binom.cdf(low - 1, n, p)
        lines.append(f"{text} {text_of([quantile, ordered[low - 1], ordered[high - 1], level])}")
    write(
        "order",
        ["R", "scipy"],
        [
            "A line: n p, n values; quantile p, and low, high and level of its interval of 95 % (0: none).",
            "R's quantile(type = 1); ranks and level from scipy's binom.",
        ],
        lines,
    )


R_ADJUST = """
for (line in readLines(path)) {
  p <- scan(text = line, quiet = TRUE)[-1]
  cat(p.adjust(p, "holm"), p.adjust(p, "BH"), "\\n")
}"""


def make_multiple():
    rng = random.Random(4)
    inputs = []
    for i in range(CASES):
        n = rng.randint(1, 60)
        p = [round(rng.random() ** rng.choice([1, 3, 6]), 4 if i % 2 else 1) for _ in range(n)]
        inputs.append(f"{n} {text_of(p)}")
    answers = run_r(R_ADJUST, inputs)
    lines = [f"{one} {text_of(map(float, answer.split()))}" for one, answer in zip(inputs, answers, strict=True)]
    write("multiple", ["R"], ["A line: n, n p values; n by p.adjust(p, 'holm'), n by p.adjust(p, 'BH')."], lines)


# ---- levels


R_LEVELS = """
for (line in readLines(path)) {
  v <- scan(text = line, quiet = TRUE); k <- v[1]; lengths <- v[2:(1 + k)]; x <- v[-(1:(1 + k))]
  g <- factor(rep(seq_len(k), lengths)); a <- anova(lm(x ~ g))
  n0 <- (sum(lengths) - sum(lengths^2) / sum(lengths)) / (k - 1)
  cat(mean(tapply(x, g, mean)), max(0, (a[1, 3] - a[2, 3]) / n0), a[2, 3], "\\n")
}"""


def make_levels():
    rng = random.Random(5)
    inputs = []
    for _ in range(100):
        k = rng.randint(2, 12)
        lengths = [rng.randint(2, 12) for _ in range(k)]
        values = []
        for length in lengths:
            base = rng.gauss(100, rng.choice([0, 5]))
            values += [round(rng.gauss(base, 3), 3) for _ in range(length)]
        inputs.append(f"{k} {text_of(lengths)} {text_of(values)}")
    answers = run_r(R_LEVELS, inputs)
    lines = [f"{one} {text_of(map(float, answer.split()))}" for one, answer in zip(inputs, answers, strict=True)]
    write(
        "levels",
        ["R"],
        [
            "A line: k, k lengths, the values run by run; mean of the runs' means, variance between, variance within.",
            "Mean squares by R's anova(lm()).",
        ],
        lines,
    )


# ---- change points


def make_segments():
    rng = numpy.random.default_rng(6)
    lines, differ = [], 0
    for i in range(100):
        n, least = int(rng.integers(30, 200)), int([1, 5, 2, 10][i % 4])
        means = numpy.repeat(rng.normal(100, 8, 6), -(-n // 6))[:n]
        values = numpy.round(rng.normal(means, 4), 3)
        penalty = float(round(16 * rng.uniform(1, 4) * math.log(n), 3))
        search = ruptures.KernelCPD(kernel="linear", min_size=least, jump=1).fit(values)
        choices = [[n]] + [search.predict(n_bkps=k) for k in range(1, min(20, n // least - 1) + 1)]
        best = min(choices, key=lambda ends, v=values, p=penalty: total(v, ends) + p * len(ends))
        assert len(best) < 20
        pelt = ruptures.Pelt(model="l2", min_size=least, jump=1).fit(values).predict(pen=penalty)
        differ += pelt != best
        lines.append(f"{n} {least} {penalty} {text_of(values)} {len(best)} {text_of(best)}")
    write(
        "segments",
        ["ruptures", "numpy"],
        [
            f"""
            A line: n, the least length, the penalty, n values; number of segments, the end of each. Of the best
            divisions into 1 to 21 segments that ruptures' KernelCPD(kernel = 'linear', jump = 1) finds, the one with
            the least cost + penalty × changes; its Pelt(model = 'l2', jump = 1) gives the same in
            {len(lines) - differ} of {len(lines)} cases.
            """,
        ],
        lines,
    )


def total(values, ends):
    return sum(
        float(((part := values[a:b]) - part.mean()) @ (part - part.mean())) for a, b in itertools.pairwise([0, *ends])
    )


# ---- fits


def line_of(sizes, times):
    """The line without limits by lstsq; on a limit by nnls."""
    rows = numpy.column_stack([1 / times, sizes / times])
    scale = numpy.linalg.norm(rows, axis=0)
    answer = numpy.linalg.lstsq(rows / scale, numpy.ones(len(times)), rcond=None)[0] / scale
    if (answer < 0).any():
        answer = optimize.nnls(rows / scale, numpy.ones(len(times)))[0] / scale
    return answer, float(((rows @ answer - 1) ** 2).sum())


def make_fit():
    rng = numpy.random.default_rng(7)
    lines = []
    for i in range(100):
        n_sizes, runs = int(rng.integers(2, 13)), int(rng.integers(1, 5))
        sizes = numpy.sort(rng.choice(2 ** numpy.arange(0, 24), n_sizes, replace=False)).astype(float)
        alpha, beta = [(1000, 0.2), (5, 0.3), (800, 0.0), (0.0, 0.5), (3000, 1e-5)][i % 5]
        truth = alpha + beta * sizes + (sizes > sizes[n_sizes // 2]) * rng.choice([0, 4]) * (alpha + beta * sizes)
        points = [(s, t * f) for s, t in zip(sizes, truth, strict=True) for f in rng.lognormal(0, 0.03, runs)]
        points = [(s, float(f"{t:.6g}")) for s, t in points]
        best = best_pieces(sizes, points)
        flat = [v for point in points for v in point]
        lines.append(f"{len(points)} {text_of(flat)} {len(best)} {text_of([v for piece in best for v in piece])}")
    write(
        "fit",
        ["numpy", "scipy"],
        [
            "A line: n, n points (size, time); number of pieces, and of each its first and last size, α and β.",
            "Every division into pieces tried; each piece by numpy's lstsq, or scipy's nnls where that is negative.",
        ],
        lines,
    )


def best_pieces(sizes, points):
    array = numpy.array(points)
    n, best = len(points), None
    for k in range(1, 5):
        for cuts in itertools.combinations(range(1, len(sizes)), k - 1):
            edges = [0, *cuts, len(sizes)]
            if k > 1 and any(b - a < 3 for a, b in itertools.pairwise(edges)):
                continue
            pieces, squares = [], 0.0
            for a, b in itertools.pairwise(edges):
                part = array[(array[:, 0] >= sizes[a]) & (array[:, 0] <= sizes[b - 1])]
                (alpha, beta), more = line_of(part[:, 0], part[:, 1])
                pieces.append((sizes[a], sizes[b - 1], alpha, beta))
                squares += more
            bic = n * math.log(squares / n + 1e-18) + (3 * k - 1) * math.log(n)
            if best is None or bic < best[0]:
                best = (bic, pieces)
    return best[1]


def make_fit_threads():
    rng = numpy.random.default_rng(8)
    lines = []
    for i in range(100):
        threads = numpy.unique(rng.integers(1, [16, 128, 1024][i % 3], int(rng.integers(4, 12)))).astype(float)
        threads = numpy.unique([1, 2, 4, *threads])  # without few threads λ has no data
        sigma, kappa = [(0.1, 0.001), (0.0, 0.0), (0.3, 0.0), (0.0, 0.02)][i % 4]
        truth = 1000 * threads / (1 + sigma * (threads - 1) + kappa * threads * (threads - 1))
        points = [
            (t, float(f"{x * f:.6g}")) for t, x in zip(threads, truth, strict=True) for f in rng.lognormal(0, 0.05, 2)
        ]
        n, x = numpy.array(points).T
        rows = numpy.column_stack([numpy.ones_like(n), n - 1, n * (n - 1)]) * (x / n)[:, None]
        scale = numpy.linalg.norm(rows, axis=0)
        a = optimize.nnls(rows / scale, numpy.ones(len(n)))[0] / scale
        flat = [v for point in points for v in point]
        lines.append(f"{len(points)} {text_of(flat)} {text_of([1 / a[0], a[1] / a[0], a[2] / a[0]])}")
    write(
        "fit-threads",
        ["numpy", "scipy"],
        ["A line: n, n points (threads, throughput); λ, σ, κ. scipy's nnls of the same rows."],
        lines,
    )


# ---- random numbers


def make_random():
    """numpy has no xoshiro256++: the published algorithm over again, in integers."""
    mask, lines = (1 << 64) - 1, []

    def rotate(x, k):
        return (x << k | x >> (64 - k)) & mask

    for seed in [0, 1, 42, 2**63, mask]:
        state, s = seed, []
        for _ in range(4):
            state = (state + 0x9E3779B97F4A7C15) & mask
            z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & mask
            z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
            s.append(z ^ z >> 31)
        out = []
        for _ in range(8):
            out.append((rotate((s[0] + s[3]) & mask, 23) + s[0]) & mask)
            t = s[1] << 17 & mask
            s[2] ^= s[0]
            s[3] ^= s[1]
            s[1] ^= s[2]
            s[0] ^= s[3]
            s[2] ^= t
            s[3] = rotate(s[3], 45)
        lines.append(" ".join(map(str, [seed, *out])))
    write(
        "random", ["python"], ["A line: seed; the first eight numbers, by the published algorithm in integers."], lines
    )


MAKERS = {
    name.removeprefix("make_").replace("_", "-"): maker
    for name, maker in list(globals().items())
    if name.startswith("make_")
}

if __name__ == "__main__":
    for name in sys.argv[1:] or MAKERS:
        MAKERS[name]()
