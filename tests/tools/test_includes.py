# SPDX-License-Identifier: MIT
"""tools/includes.py refuses an include that README's map does not allow."""

import includes
import pytest


@pytest.mark.parametrize(
    ("path", "included"),
    [
        ("schema/json/json.c", "daemon/log.h"),
        ("agent/os/procfs.c", "agent/base/wait.h"),
        ("api/handle/read.c", "api/handle/route/routes.h"),
        ("api/handle/read.c", "daemon/store/store.h"),
        ("api/handle/render/cells.c", "api/handle/handlers.h"),
        ("api/http/connection/relay.c", "api/http/http.h"),
        ("api/http/problem.c", "api/state.h"),
        ("api/http/problem.c", "daemon/service/service.h"),
        ("daemon/analysis/statistics/fit.c", "daemon/store/store.h"),
        ("daemon/analysis/statistics/fit.c", "daemon/analysis/phrase.h"),
        ("daemon/config.c", "daemon/host/hostfs.h"),
        ("daemon/host/environment/noise.c", "daemon/placement/placement.h"),
        ("daemon/host/topology.c", "daemon/host/environment/environment.h"),
        ("daemon/placement/pairs.c", "daemon/run/spawn/spawn.h"),
        ("daemon/run/runner.c", "daemon/service/host.h"),
        ("daemon/run/sandbox/cgroup.c", "daemon/run/watch/procs.h"),
        ("daemon/run/spawn/spawn.c", "daemon/run/runner-host.h"),
        ("daemon/run/unlisted/new.c", "daemon/log.h"),
        ("daemon/run/runner.c", "daemon/token.h"),
        ("daemon/service/read.c", "api/api.h"),
        ("daemon/store/database/db.c", "daemon/store/internal.h"),
        ("daemon/store/runs.c", "daemon/host/hostfs.h"),
        ("daemon/tune/tuning.c", "daemon/run/spawn/spawn.h"),
        ("daemon/unlisted/new.c", "daemon/log.h"),
    ],
)
def test_refused(path, included):
    assert includes.fault(path, included)


@pytest.mark.parametrize(
    ("path", "included"),
    [
        ("api/handle/read.c", "api/http/feed.h"),
        ("api/handle/bundle/bundle.c", "api/handle/histograms.h"),
        ("api/api.c", "api/state.h"),
        ("daemon/main.c", "api/api.h"),
        ("daemon/main.c", "daemon/run/scheduler.h"),
        ("daemon/run/launch.c", "daemon/run/watch/strays.h"),
        ("daemon/run/runner.c", "daemon/result/result.h"),
        ("daemon/run/scheduler.h", "daemon/service/host.h"),
        ("daemon/service/read.c", "daemon/service/cache.h"),
        ("daemon/store/records.h", "daemon/analysis/statistics/order.h"),
        ("daemon/store/runs.c", "schema/util.h"),
    ],
)
def test_allowed(path, included):
    assert includes.fault(path, included) is None
