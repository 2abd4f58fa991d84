# SPDX-License-Identifier: MIT
"""What follows from the rounds of a run's calibration probes: their quartiles, and in what two sittings of them differ
(daemon/result/probes.h, which has the sources)."""

import functools
import itertools
import math

# The first of a run's ends stands first.
ROLES = ("sender", "receiver", "initiator", "responder", "server", "client")
ROUNDS, LEVEL, SHARE_TOLERANCE, SHARE_ALONE = 15, 0.001, 0.15, 0.8
BY_CHANCE = 0.035  # of all series of two sittings together
# Operations of a round, and how far from 1 a ratio has to be.
KINDS = {"getpid_ns": (2000, 0.08), "memcpy_64k_ns": (40, 0.12), "hand_over_ns": (1000, 0.30), "wake_up_ns": (10, 0.50)}


def series_of(kind, rounds):
    """Quartiles by the nearest rank."""
    if len(rounds) != ROUNDS or min(rounds) <= 0:
        raise ValueError(f"{kind}: not {ROUNDS} positive rounds")
    found = dict(zip(("low", "median", "high"), sorted(rounds)[3:12:4], strict=True))
    return found | {"operations": KINDS[kind][0], "rounds": rounds}


def probe_of(probe):
    """That of a thread, and of those that are beside it, with what follows from its rounds. Runs of earlier versions
    have none of further threads."""
    found = probe | {kind: probe[kind] and series_of(kind, probe[kind]["rounds"]) for kind in KINDS}
    if "others" in probe:
        found["others"] = [probe_of(other) | {"thread": thread} for thread, other in enumerate(probe["others"], 1)]
    return found


def sitting_of(ends):
    return ends and {role: probe_of(end) for role, end in ends.items()}


def roles_of(ends):
    """The roles, in the daemon's order."""
    return [role for role in ROLES if role in ends]


def cpus_of(ends):
    """None: some end was on several, or nothing is known."""
    found = [ends[role]["cpu"] for role in roles_of(ends)] if ends else [None]
    return None if None in found else found


@functools.lru_cache(256)
def choices(ranks):
    """How many choices of half of the ranks have the sum 0, 1, 2, …: of one n all are packed into one integer, of which
    each sum has its own bits."""
    width, n = len(ranks), len(ranks) // 2
    ways = [1] + [0] * n
    for done, rank in enumerate(ranks):
        for k in range(min(done, n - 1), -1, -1):
            ways[k + 1] += ways[k] << (width * rank)
    return [ways[n] >> (width * at) & ((1 << width) - 1) for at in range(sum(ranks) + 1)]


def p_of(x, y):
    """Two-sided, of the exact rank-sum test, with midranks where values are tied."""
    values = sorted(x + y)
    ranks = {value: 2 * values.index(value) + 1 + values.count(value) for value in values}  # doubled, so integers
    ways, observed = choices(tuple(ranks[value] for value in values)), sum(ranks[value] for value in x)
    return 2 * min(sum(ways[: observed + 1]), sum(ways[observed:])) / sum(ways)


def ratio_of(earlier, later, tolerance, level=LEVEL):
    """The ratio of the later rounds to the earlier ones; None: they are alike."""
    x, y = ([math.log(value) for value in rounds] for rounds in (later, earlier))
    shift = sorted(one - other for one in x for other in y)[len(x) * len(y) // 2]
    return math.exp(shift) if abs(shift) > math.log1p(tolerance) and p_of(x, y) < level else None


def pairs_of(earlier, later):
    """The probes of the threads that were on one CPU each, the same in both sittings, of whatever roles."""
    for former, role in zip(roles_of(earlier), roles_of(later), strict=True):
        threads = ([sitting, *sitting.get("others", [])] for sitting in (earlier[former], later[role]))
        for thread, (a, b) in enumerate(zip(*threads, strict=False)):
            if a["cpu"] == b["cpu"] is not None:
                yield role, thread, a, b


def compared_of(earlier, later):
    return list(dict.fromkeys(b["cpu"] for _, _, _, b in pairs_of(earlier, later)))


def level_of(earlier, later):
    """Of each series, as a run of many threads has many."""
    n = sum(bool(a[kind] and b[kind]) for _, _, a, b in pairs_of(earlier, later) for kind in KINDS)
    return min(LEVEL, BY_CHANCE / max(n, 1))


def changes_of(earlier, later, since, old):
    """The changes between two sittings on the same CPUs of threads 0. An old version had one level for each series, and
    judged the share of a CPU that others had a part of both times."""
    found = []
    level, alone = (LEVEL, 0) if old else (level_of(earlier, later), SHARE_ALONE)
    for role, thread, a, b in pairs_of(earlier, later):
        ratios = {
            kind: ratio_of(a[kind]["rounds"], b[kind]["rounds"], tolerance, level)
            for kind, (_, tolerance) in KINDS.items()
            if a[kind] and b[kind]
        }
        shares = [end["cpu_share"] for end in (a, b)]
        if abs(shares[1] - shares[0]) > SHARE_TOLERANCE and max(shares) > alone:
            ratios["cpu_share"] = shares[1] / max(shares[0], 1e-3)
        found += [
            {"since": since, "role": role, "thread": thread, "cpu": b["cpu"], "figure": figure, "ratio": ratio}
            for figure, ratio in ratios.items()
            if ratio is not None
        ]
    return found


def verdicts_of(probes, others):
    """What `probes` may have beside the rounds: with the changes since each of the others (those of the experiment's
    done runs, in their order), and with none. The daemon holds a run against the first that was done by then; which one
    that was is not in a bundle. A change without `usual` may be of an old version."""
    before, after = (sitting_of(probes[time]) for time in ("before", "after"))
    cpus = cpus_of(before)
    compared = cpus is not None and cpus == cpus_of(after)
    within = compared_of(before, after) if compared else []
    same = [one for one in others if cpus is not None and one["cpus"] == cpus]
    same.sort(key=lambda one: one.get("cpus_compared", {}).get("before") != within)
    stated = {"before": before, "after": after, "cpus": cpus, "compared": compared}
    first, *rest = (one["before"] for one in same) if same else (None,)
    may_be_old = any("usual" not in change for change in probes["changes"])
    for old, reference in itertools.product((False, True)[: 1 + may_be_old], (first, None, *rest)):
        changes = changes_of(before, after, "before", old) if compared else []
        changes += changes_of(reference, before, "first_run", old) if reference else []
        since = compared_of(reference, before) if reference else []
        if "cpus_compared" in probes:
            yield stated | {"cpus_compared": {"before": within, "first_run": since}, "changes": changes}
        else:  # of an earlier version
            left = ({name: one[name] for name in ("since", "role", "figure", "ratio")} for one in changes)
            yield stated | {"changes": list(left)}
