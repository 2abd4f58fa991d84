# SPDX-License-Identifier: MIT
"""The ratio of two contenders from interleaved rounds, and its verdict.

Each round gives a ratio of its own: whatever slows the machine down for a while slows both sides of a round. The figure
is the median of these ratios. Its interval is the distribution-free one, between two of the ratios themselves (the sign
test turned round): it covers the true median in at least 95 of 100 cases whatever the ratios' distribution, and needs
six rounds at least.
"""

import math

ROUNDS_MIN = 6
REACHED, UNDECIDED, MISSED = "reached", "undecided", "missed"


def interval(values):
    """The 95 % interval of the median; None below six values.

    >>> interval([1, 2, 3, 4, 5])
    >>> interval([6, 1, 5, 2, 4, 3])
    (1, 6)
    >>> interval([9, 8, 7, 6, 5, 4, 3, 2, 1])
    (2, 8)
    >>> interval(range(1, 21))
    (6, 15)
    """
    ordered, n = sorted(values), len(values)
    outside = skipped = 0
    while 2 * (outside + math.comb(n, skipped) / 2**n) <= 0.05:
        outside += math.comb(n, skipped) / 2**n
        skipped += 1
    return (ordered[skipped - 1], ordered[n - skipped]) if skipped else None


def verdict(bounds, limit, smaller=False):
    """One of three kinds: the whole interval keeps the limit, is on both sides of it, or is on the wrong one.

    >>> verdict((0.98, 1.02), 0.97), verdict((0.96, 1.02), 0.97), verdict((0.90, 0.96), 0.97)
    ('reached', 'undecided', 'missed')
    >>> verdict((0.98, 1.02), 1.03, True), verdict((1.02, 1.04), 1.03, True), verdict((1.04, 1.05), 1.03, True)
    ('reached', 'undecided', 'missed')
    >>> verdict((0.97, 1.0), 0.97), verdict((0.9, 1.03), 1.03, True), verdict(None, 1)
    ('reached', 'reached', 'undecided')
    """
    if bounds is None:
        return UNDECIDED
    low, high = (-bounds[1], -bounds[0]) if smaller else bounds
    limit = -limit if smaller else limit
    return REACHED if low >= limit else MISSED if high < limit else UNDECIDED
