# SPDX-License-Identifier: MIT
"""A base of many hosts without their stores: filled by SQL, in seconds per million runs."""

import hashlib
import json
import uuid

SIZES = (64, 4096, 16384, 65536, 262144, 1048576)
POINTS = [
    {"workload": "stream", "transport": "pipe", "message_size": size, "placement": placement, "threads": 1}
    for size in SIZES
    for placement in ("same-node", "cross-node")
]
FACTS = {"cpus": 64, "kernel_release": "6.1.0-30-amd64", "numa_balancing": 0, "cpufreq_governor": "performance"}

# A class is every CLASSES-th host. Every 50th host is 5 % slower across nodes; equal hosts differ by 0.8 %.
STORES = """
INSERT INTO stores (store, store_uuid, host, last_export)
SELECT md5('store' || i)::uuid, md5('store' || i)::uuid, 'rack' || i / 40 || '-' || lpad((i %% 40)::text, 2, '0'), now()
FROM generate_series(0, %(hosts)s - 1) i"""
CURSORS = "INSERT INTO cursors (store, change) SELECT store, 0 FROM stores"
EXPERIMENTS = """
INSERT INTO experiments (store, id, change, digest, state, seed, created_at, runs_total, runs_done, runs_failed,
        runs_cancelled, version, skipped, merged, spec)
SELECT md5('store' || i)::uuid, 1, %(runs)s + 1, '\\x00', 'done', 1, 0, %(runs)s, %(runs)s, 0, 0, '0.1.0', '[]', '{}',
        '{}'
FROM generate_series(0, %(hosts)s - 1) i"""
RUNS = """
INSERT INTO runs (store, id, change, digest, experiment_id, point, environment, repetition, position, state, attempt,
        flags, throughput, latency_p50, latency_p99, cost)
SELECT md5('store' || i)::uuid, k, k, '\\x00', 1, p.point, e.environment, k, k, 'done', 1, '[]',
        1e9 * p.level * h.level * (1 + 0.01 * (random() + random() + random() - 1.5)),
        8000 / p.level / h.level * (1 + 0.01 * (random() + random() + random() - 1.5)),
        24000 / p.level / h.level * (1 + 0.03 * (random() + random() + random() - 1.5)),
        900 / p.level / h.level * (1 + 0.01 * (random() + random() + random() - 1.5))
FROM generate_series(%(from)s::int, %(to)s - 1) i
CROSS JOIN LATERAL (SELECT 1 + 0.008 * (random() + random() + random() - 1.5) + 0 * i AS level) own
CROSS JOIN generate_series(1, %(runs)s) k
JOIN unnest(%(points)s::uuid[], %(levels)s::float8[], %(cross)s::boolean[]) WITH ORDINALITY
        AS p (point, level, across, n) ON p.n = k %% %(n_points)s + 1
CROSS JOIN LATERAL (SELECT own.level * CASE WHEN p.across AND i %% 50 = 7 THEN 0.95 ELSE 1 END AS level) h
JOIN unnest(%(environments)s::uuid[]) WITH ORDINALITY AS e (environment, n) ON e.n = i %% %(classes)s + 1"""
SUMMARIES = """
INSERT INTO host_points (store, point, class, figure, runs, median_log, var_log)
SELECT r.store, r.point, e.class, f.figure, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY ln(f.value)),
        var_samp(ln(f.value))
FROM runs r JOIN environments e USING (environment) CROSS JOIN LATERAL (VALUES ('throughput', r.throughput),
        ('latency_p50', r.latency_p50), ('latency_p99', r.latency_p99), ('cost', r.cost)) f (figure, value)
GROUP BY 1, 2, 3, 4"""


def content(value):
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return uuid.UUID(bytes=hashlib.sha256(text.encode()).digest()[:16]), text


def fill(base, hosts, runs, classes=1, at_once=50, progress=lambda done: None):
    """`runs` of each host. Returns how many there are in all."""
    points = [content(point) for point in POINTS]
    environments = []
    with base.cursor() as cursor:
        cursor.executemany("INSERT INTO points (point, spec) VALUES (%s, %s)", points)
        for i in range(classes):
            name, text = content(FACTS | {"cpu_model": f"Example {i}"})
            environments.append(name)
            cursor.execute(
                "INSERT INTO environments (environment, class, cpu_model, cpus, memory_gib, kernel_family, facts) "
                "VALUES (%s, %s, %s, 64, 256, '6.1', %s)",
                (name, content([f"Example {i}"])[0], f"Example {i}", text),
            )
    base.execute(STORES, {"hosts": hosts})
    base.execute(CURSORS)
    base.execute(EXPERIMENTS, {"hosts": hosts, "runs": runs})
    values = {
        "points": [name for name, _ in points],
        "levels": [1.0 if point["placement"] == "same-node" else 0.7 for point in POINTS],
        "cross": [point["placement"] == "cross-node" for point in POINTS],
        **{"n_points": len(POINTS), "environments": environments, "classes": classes, "runs": runs},
    }
    for begin in range(0, hosts, at_once):
        base.execute(RUNS, values | {"from": begin, "to": min(hosts, begin + at_once)})
        progress(begin)
    base.execute(SUMMARIES)
    base.execute("ANALYZE")
    return hosts * runs
