# SPDX-License-Identifier: MIT
"""The statistics of the odd host: a robust comparison with the rest, Student's t, Simes and Benjamini-Hochberg. And of
two samples: exact rank tests, the shift between them with its interval, Holm and verdicts."""

import bisect
import functools
import math
import statistics
from collections import Counter
from dataclasses import dataclass

MAD_TO_SIGMA = 1.4826022185056018  # 1 / the normal quantile of 3/4
# The MAD uses about 0.37 of the information about a normal spread (Rousseeuw & Croux 1993): so many degrees of
# freedom a host. With fewer hosts than FEW there is no result.
MAD_EFFICIENCY = 0.37
FEW = 5


def beta_fraction(a, b, x):
    """Lentz's continued fraction of the incomplete beta function (DLMF 8.17.22)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / max(1.0 - (a + b) * x / (a + 1), tiny)
    h = d
    for m in range(1, 1000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + numerator / c
            c = c if abs(c) > tiny else tiny
            h *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return h


def incomplete_beta(a, b, x):
    """Regularized, for 0 <= x <= 1."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * beta_fraction(a, b, x) / a
    return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b


def t_two_sided(t, freedom):
    """P(|T| >= |t|) of Student's distribution."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


@functools.cache
def t_quantile(freedom, two_sided):
    """t with P(|T| >= t) = two_sided, by bisection."""
    low, high = 0.0, 1.0
    while t_two_sided(high, freedom) > two_sided:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_two_sided(middle, freedom) > two_sided else (low, middle)
    return (low + high) / 2


def median_without(ordered, index):
    """The median of a sorted list without its element at the index."""
    n = len(ordered) - 1

    def at(k):
        return ordered[k if k < index else k + 1]

    return at(n // 2) if n % 2 else (at(n // 2 - 1) + at(n // 2)) / 2


def against_the_rest(values, variances, runs):
    """For each host (effect, half, p): its logarithm less the median of the others, half of the 95 % interval of
    that, and the probability of as much among equal hosts, which is 1 for every effect within its interval. values: a
    median logarithm a host; variances: between its runs, None where there is one; runs: how many. The spread is that
    between hosts, by the MAD, so that odd ones do not hide themselves; a host with fewer runs than the others has a
    wider one. None with fewer than FEW hosts."""
    n = len(values)
    if n < FEW:
        return None
    order = sorted(range(n), key=values.__getitem__)
    ordered = [values[i] for i in order]
    centre = statistics.median(ordered)
    # The MAD of few values is too small on average; n / (n - 0.8) mends that (Croux & Rousseeuw 1992).
    spread = MAD_TO_SIGMA * statistics.median(abs(v - centre) for v in values) * n / (n - 0.8)
    within = statistics.median([v for v in variances if v is not None] or [0.0]) * math.pi / 2  # of a median of runs
    mean_inverse = sum(1 / r for r in runs) / n
    between = max(0.0, spread**2 - within * mean_inverse)
    freedom = max(1.0, MAD_EFFICIENCY * (n - 1))
    quantile = t_quantile(freedom, 0.05)
    found = [None] * n
    for position, i in enumerate(order):
        effect = values[i] - median_without(ordered, position)
        own = max(spread**2, between + within / runs[i])
        error = math.sqrt(own * (1 + math.pi / 2 / (n - 1)))  # with that of the others' median
        if error > 0:
            # Most hosts are within the interval. Their p is above 5 %, and how far is of no influence on what is named.
            p = t_two_sided(effect / error, freedom) if abs(effect) > quantile * error else 1.0
        else:
            p = float(effect == 0)
        found[i] = (effect, quantile * error, p)
    return found


def simes(p):
    """One p value for "nothing is odd at this host" from those of its points (Simes 1986), which may be correlated
    positively, as the points of one machine are."""
    return min(1.0, min(len(p) * value / rank for rank, value in enumerate(sorted(p), 1)))


def benjamini_hochberg(p, level):
    """The indices that are named while the expected share of false ones among them is at most the level."""
    order = sorted(range(len(p)), key=p.__getitem__)
    last = max((rank for rank, i in enumerate(order, 1) if p[i] <= level * rank / len(p)), default=0)
    return set(order[:last])


# Two samples, as the daemon compares them (daemon/analysis/statistics/rank.h and compare.h), held to the same
# recorded answers of R and SciPy.

# Up to so many values of one side times those of the other, and so many pairs, the null distribution is counted; beyond
# it is normal to three digits.
EXACT, EXACT_PAIRS = 2500, 200


def midranks(values):
    """The ranks of the values, in their order; doubled, so that those of ties are integers, too."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks, begin = [0] * len(values), 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and values[order[end]] == values[order[begin]]:
            end += 1
        for i in order[begin:end]:
            ranks[i] = begin + 1 + end
        begin = end
    return ranks


def unpack(packed, width):
    data = packed.to_bytes((packed.bit_length() + 7) // 8 + width, "little")
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data) - width + 1, width)]


@functools.lru_cache(256)
def ways_of_sums(ranks, n):
    """How many choices of n of the ranks have the sum 0, 1, 2, …: integers, all sums of one n packed into one."""
    width = len(ranks) // 8 + 1  # bytes; there are fewer choices than 2^len(ranks)
    ways = [1] + [0] * n
    for done, rank in enumerate(ranks):
        for k in range(min(done, n - 1), -1, -1):
            ways[k + 1] += ways[k] << (8 * width * rank)
    return unpack(ways[n], width)


@functools.lru_cache(256)
def ways_of_signs(ranks):
    """How many choices of signs have the sum 0, 1, 2, … of the positive ranks."""
    width, ways = len(ranks) // 8 + 1, 1
    for rank in ranks:
        ways += ways << (8 * width * rank)
    return unpack(ways, width)


def two_sided(ways, observed):
    """Twice the smaller tail."""
    less, greater = sum(ways[: observed + 1]), sum(ways[observed:])
    return min(1.0, 2 * min(less, greater) / sum(ways))


def normal_tail(z):
    """P(Z >= z)."""
    return math.erfc(z / math.sqrt(2)) / 2


def rank_sum_p(x, y):
    """The two-sided p of Wilcoxon's rank-sum test, with ties, too."""
    x, y = sorted((x, y), key=len)  # the shorter walk
    n, ranks = len(x), midranks(x + y)
    observed = sum(ranks[:n])
    if n * len(y) <= EXACT:
        return two_sided(ways_of_sums(tuple(sorted(ranks)), n), observed)
    total = len(ranks)
    tied = sum(count**3 - count for count in Counter(ranks).values())
    variance = n * len(y) / 12 * (total + 1 - tied / (total * (total - 1)))
    off = abs(observed / 2 - n * (total + 1) / 2) - 0.5  # Lehmann (1975), 1.4
    return min(1.0, 2 * normal_tail(off / math.sqrt(variance))) if variance > 0 else 1.0


def signed_rank_p(differences):
    """The two-sided p of Wilcoxon's signed-rank test. Differences of 0 are left out."""
    kept = [d for d in differences if d != 0]
    ranks = midranks([abs(d) for d in kept])
    observed = sum(rank for rank, d in zip(ranks, kept, strict=True) if d > 0)
    if len(kept) <= EXACT_PAIRS:
        return two_sided(ways_of_signs(tuple(sorted(ranks))), observed)
    off = abs(observed / 2 - sum(ranks) / 4) - 0.5  # Lehmann (1975), 3.2
    return min(1.0, 2 * normal_tail(off / math.sqrt(sum(rank * rank for rank in ranks) / 16)))


def find_quantile(ways, tail):
    """(q, probability below it): the greatest q with P(statistic < q) <= tail, 0 where there is none."""
    below, everything = 0, sum(ways)
    for q, count in enumerate(ways):
        if (below + count) / everything > tail:
            return q, below / everything
        below += count
    return len(ways), 1.0


def normal_quantile(mean, deviation, tail):
    q = max(0, math.floor(mean + 0.5 - statistics.NormalDist().inv_cdf(1 - tail) * deviation))
    return q, normal_tail((mean - q + 0.5) / deviation) if q else 0.0


def rank_sum_quantile(n, m, tail):
    """A quantile of the number of pairs in which x is greater, without ties."""
    n, m = sorted((n, m))
    if n * m > EXACT:
        return normal_quantile(n * m / 2, math.sqrt(n * m * (n + m + 1) / 12), tail)
    return find_quantile(ways_of_sums(tuple(range(1, n + m + 1)), n)[n * (n + 1) // 2 :], tail)


def signed_rank_quantile(n, tail):
    """A quantile of the sum of the positive differences' ranks, without ties."""
    if n > EXACT_PAIRS:
        return normal_quantile(n * (n + 1) / 4, math.sqrt(n * (n + 1) * (2 * n + 1) / 24), tail)
    return find_quantile(ways_of_signs(tuple(range(1, n + 1))), tail)


def find_kth(k, low, high, rounding, count):
    """The k-th smallest (from 0 on) of values between the two, of which count(x) are at most x. By bisection, as there
    may be millions."""
    while high - low > rounding:
        middle = (low + high) / 2
        if count(middle) > k:
            high = middle
        else:
            low = middle
    return high


def kth_difference(x, y, k):
    """The k-th of all x - y; both are sorted."""
    rounding = 2**-51 * max(abs(value) for value in (x[0], x[-1], y[0], y[-1]))

    def count(difference):
        return sum(len(y) - bisect.bisect_left(y, value - difference) for value in x)

    return find_kth(k, x[0] - y[-1], x[-1] - y[0], rounding, count)


def kth_average(x, k):
    """The k-th of the averages of each two of x, which is sorted, and of each with itself (Walsh)."""

    def count(average):
        ordered = sum(bisect.bisect_right(x, 2 * average - value) for value in x)
        return (ordered + bisect.bisect_right(x, average)) // 2

    return find_kth(k, x[0], x[-1], 2**-51 * max(abs(x[0]), abs(x[-1])), count)


@dataclass
class Shift:
    """`estimate` is Hodges and Lehmann's. Without an interval, for too few values, the other three are None."""

    estimate: float
    low: float | None = None
    high: float | None = None
    level: float | None = None  # the true one, at least the requested


def rank_sum_shift(x, y, level):
    """How much greater x is than y, with the interval of Moses."""
    x, y = sorted(x), sorted(y)
    n = len(x) * len(y)
    shift = Shift((kth_difference(x, y, (n - 1) // 2) + kth_difference(x, y, n // 2)) / 2)
    q, beyond = rank_sum_quantile(len(x), len(y), (1 - level) / 2)
    if q > 0:
        shift.low, shift.high, shift.level = kth_difference(x, y, q - 1), kth_difference(x, y, n - q), 1 - 2 * beyond
    return shift


def signed_rank_shift(differences, level):
    """The centre of the differences, with the interval of Tukey."""
    x = sorted(differences)
    n = len(x) * (len(x) + 1) // 2
    shift = Shift((kth_average(x, (n - 1) // 2) + kth_average(x, n // 2)) / 2)
    q, beyond = signed_rank_quantile(len(x), (1 - level) / 2)
    if q > 0:
        shift.low, shift.high, shift.level = kth_average(x, q - 1), kth_average(x, n - q), 1 - 2 * beyond
    return shift


def holm(p):
    """Adjusted p, in their order: below a level, that is the chance of any false one among them (Holm 1979)."""
    order = sorted(range(len(p)), key=p.__getitem__)
    adjusted, worst = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, p[i] * (len(p) - rank)))
        adjusted[i] = worst
    return adjusted


ERROR = 0.05  # of first kind over an answer; one minus the level of the interval
MARGIN = 0.03  # a ratio whose 90 % interval lies within 1 ± this is equivalent


@dataclass
class Ratio:
    """One figure of a candidate over that of a baseline."""

    ratio: float
    interval: list | None  # at 95 %; None: too few values
    level: float | None  # the true one
    p: float
    p_adjusted: float
    verdict: str


def compare(pairs):
    """A Ratio for each (baseline, candidate, paired, more is better) of one answer. The values are logarithms; those of
    a pair are at the same place. Equivalence is decided first, by two one-sided tests at 5 % (Schuirmann 1987), then
    the difference, with Holm's correction over the answer."""
    found = []
    for baseline, candidate, paired, _ in pairs:
        if paired:
            differences = [c - b for b, c in zip(baseline, candidate, strict=True)]
            wide, narrow = (signed_rank_shift(differences, level) for level in (1 - ERROR, 1 - 2 * ERROR))
            p = signed_rank_p(differences)
        else:
            wide, narrow = (rank_sum_shift(candidate, baseline, level) for level in (1 - ERROR, 1 - 2 * ERROR))
            p = rank_sum_p(candidate, baseline)
        interval = None if wide.low is None else [math.exp(wide.low), math.exp(wide.high)]
        within = narrow.low is not None and math.exp(narrow.low) >= 1 - MARGIN and math.exp(narrow.high) <= 1 + MARGIN
        verdict = "equivalent" if within else "undecided"
        found.append(Ratio(math.exp(wide.estimate), interval, wide.level, p, p, verdict))
    for ratio, adjusted, (*_, more_is_better) in zip(found, holm([ratio.p for ratio in found]), pairs, strict=True):
        ratio.p_adjusted = adjusted
        if ratio.verdict != "equivalent" and adjusted <= ERROR and ratio.ratio != 1:
            ratio.verdict = "faster" if (ratio.ratio > 1) == more_is_better else "slower"
    return found
