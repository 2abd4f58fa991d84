-- SPDX-License-Identifier: MIT
-- What the daemons' stores hold, gathered: experiments, runs and deletions, each with its number in its store's sequence of
-- changes and the digest of its row. PostgreSQL 15. Times are milliseconds since the epoch, as in the stores.

CREATE TABLE stores (
        store        uuid PRIMARY KEY,          -- the identity under which it exports
        store_uuid   uuid NOT NULL,             -- what its database names itself; another one after an adoption
        adopted_from uuid REFERENCES stores,    -- whose fork it was recognised as
        host         text NOT NULL,
        first_export timestamptz NOT NULL DEFAULT now(),
        last_export  timestamptz
);
CREATE INDEX stores_host ON stores (host);

-- How far each store has been read. The row's lock is held by the one exporter that is at work.
CREATE TABLE cursors (
        store  uuid PRIMARY KEY REFERENCES stores ON DELETE CASCADE,
        change bigint NOT NULL DEFAULT 0
);

-- Points and environments are named by their content (128 bits of SHA-256), so that no exporter waits for another one's
-- transaction to learn an id; for the same reason no foreign key leads here. Both are written last in a transaction.
CREATE TABLE points (
        point uuid PRIMARY KEY,
        spec  json NOT NULL                     -- canonical: sorted keys, no white space
);

CREATE TABLE environments (
        environment   uuid PRIMARY KEY,
        class         uuid NOT NULL,            -- machines that ought to be equal: these four
        cpu_model     text,
        cpus          integer,
        memory_gib    integer,
        kernel_family text,
        facts         json NOT NULL             -- canonical
);

CREATE TABLE experiments (
        store           uuid NOT NULL REFERENCES stores ON DELETE CASCADE,
        id              bigint NOT NULL,
        change          bigint NOT NULL,
        digest          bytea NOT NULL,
        state           text NOT NULL,
        seed            bigint NOT NULL,
        created_at      bigint NOT NULL,
        started_at      bigint,
        finished_at     bigint,
        runs_total      integer NOT NULL,
        runs_done       integer NOT NULL,
        runs_failed     integer NOT NULL,
        runs_cancelled  integer NOT NULL,
        idempotency_key text,
        version         text NOT NULL,
        name            text,
        error           text,
        skipped         json NOT NULL,
        merged          json NOT NULL,
        spec            json NOT NULL,
        until           json,                   -- how far it has come that repeats until its rows are known well
        campaign        uuid,                   -- of an idempotency key CAMPAIGN/HOST
        campaign_host   text,
        PRIMARY KEY (store, id)
);
CREATE INDEX experiments_change ON experiments (store, change);
CREATE INDEX experiments_campaign ON experiments (campaign, campaign_host) WHERE campaign IS NOT NULL;

CREATE TABLE runs (
        store          uuid NOT NULL REFERENCES stores ON DELETE CASCADE,
        id             bigint NOT NULL,
        change         bigint NOT NULL,
        digest         bytea NOT NULL,
        experiment_id  bigint NOT NULL,
        point          uuid NOT NULL,
        environment    uuid,
        rate           bigint,                  -- messages per second, as a search has chosen it; else null
        repetition     integer NOT NULL,
        block          integer,                 -- null in a shuffled order
        position       integer NOT NULL,
        state          text NOT NULL,
        attempt        integer NOT NULL,
        started_at     bigint,
        finished_at    bigint,
        error          text,
        flags          json NOT NULL,
        result         json,
        throughput     double precision,        -- bytes per second; these four are from the result
        latency_p50    double precision,        -- ns
        latency_p99    double precision,        -- ns
        cost           double precision,        -- ns
        PRIMARY KEY (store, id)
);
CREATE INDEX runs_change ON runs (store, change);
CREATE INDEX runs_experiment ON runs (store, experiment_id);
CREATE INDEX runs_point ON runs (store, point);

CREATE TABLE deletions (
        store         uuid NOT NULL REFERENCES stores ON DELETE CASCADE,
        id            bigint NOT NULL,          -- of the deleted experiment
        change        bigint NOT NULL,
        digest        bytea NOT NULL,
        PRIMARY KEY (store, id)
);
CREATE INDEX deletions_change ON deletions (store, change);

-- Rows that the tables above would not take, until a later change of the same row is good.
CREATE TABLE set_aside (
        store         uuid NOT NULL REFERENCES stores ON DELETE CASCADE,
        kind          text NOT NULL,
        id            bigint NOT NULL,
        change        bigint NOT NULL,
        digest        bytea NOT NULL,
        experiment_id bigint NOT NULL,
        reason        text NOT NULL,
        contents      text NOT NULL,            -- JSON in ASCII, whatever the row had
        set_aside_at  timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (store, kind, id)
);
CREATE INDEX set_aside_change ON set_aside (store, change);

-- One row per store, point, class and figure: what the odd hosts are found from without reading the runs again. Written
-- anew for every point that an export touches, in the export's transaction. Runs at a rate that a search has chosen are
-- left out: hosts choose different ones.
CREATE TABLE host_points (
        store      uuid NOT NULL REFERENCES stores ON DELETE CASCADE,
        point      uuid NOT NULL,
        class      uuid NOT NULL,
        figure     text NOT NULL,
        runs       integer NOT NULL,
        median_log double precision NOT NULL,   -- of the natural logarithms
        var_log    double precision,            -- between the runs; null for one run
        PRIMARY KEY (store, point, class, figure)
);

CREATE TABLE campaigns (
        campaign   uuid PRIMARY KEY,
        name       text,
        spec       text NOT NULL,               -- the body that every host gets, byte for byte
        created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE campaign_hosts (
        campaign   uuid NOT NULL REFERENCES campaigns ON DELETE CASCADE,
        host       text NOT NULL,
        dispatches integer NOT NULL DEFAULT 0,
        last_error text,
        PRIMARY KEY (campaign, host)
);

-- An adopted fork shares its past with the store that it was taken from: those runs are counted there only.
CREATE VIEW own_runs AS
        SELECT r.*, s.host FROM runs r JOIN stores s USING (store)
        WHERE s.adopted_from IS NULL OR NOT EXISTS (
                SELECT FROM runs p WHERE p.store = s.adopted_from AND p.id = r.id AND p.digest = r.digest);

-- Each host of each campaign with its experiment, once; without one the experiment's columns are null. `received` counts
-- the ended runs that are here; `complete` also needs each of them.
CREATE VIEW campaign_progress AS
        SELECT DISTINCT ON (h.campaign, h.host)
                h.campaign, h.host, h.dispatches, h.last_error, e.store, e.id AS experiment_id, e.state, e.error,
                e.runs_total AS expected, COALESCE(r.received, 0) AS received,
                COALESCE(e.state IN ('done', 'failed', 'cancelled') AND r.received = e.runs_total, false) AS complete
        FROM campaign_hosts h
        LEFT JOIN experiments e ON e.campaign = h.campaign AND e.campaign_host = h.host
        LEFT JOIN LATERAL (
                SELECT count(*) AS received FROM runs WHERE runs.store = e.store AND runs.experiment_id = e.id
                AND runs.state IN ('done', 'failed', 'cancelled')) r ON true
        ORDER BY h.campaign, h.host, complete DESC, e.created_at, e.store, e.id;

CREATE VIEW campaign_summary AS
        SELECT c.campaign, c.name, c.created_at, count(p.host) AS hosts_expected, count(p.experiment_id) AS hosts_received,
                count(*) FILTER (WHERE p.complete) AS hosts_complete,
                COALESCE(sum(p.expected), 0) AS runs_expected, COALESCE(sum(p.received), 0) AS runs_received,
                100.0 * count(*) FILTER (WHERE p.complete) / NULLIF(count(p.host), 0) AS percent
        FROM campaigns c LEFT JOIN campaign_progress p USING (campaign)
        GROUP BY c.campaign, c.name, c.created_at;

-- The effect of each host against the median of its class, point by point, as a ratio. Which of them are odd is a matter of
-- statistics over all of them: ipclab-fleet odd.
CREATE VIEW host_effects AS
        SELECT s.host, hp.class, hp.point, hp.figure, hp.runs, hp.median_log, hp.var_log,
                m.hosts, exp(hp.median_log - m.median_log) AS ratio
        FROM host_points hp JOIN stores s USING (store)
        JOIN (SELECT class, point, figure, count(*) AS hosts,
                        percentile_cont(0.5) WITHIN GROUP (ORDER BY median_log) AS median_log
                FROM host_points GROUP BY class, point, figure) m USING (class, point, figure);

-- For change points: each host's experiments in the order of time, point by point.
CREATE VIEW series AS
        SELECT r.host, r.store, r.point, e.class, x.created_at, x.id AS experiment_id, count(*) AS runs,
                percentile_cont(0.5) WITHIN GROUP (ORDER BY r.throughput) AS throughput,
                percentile_cont(0.5) WITHIN GROUP (ORDER BY r.latency_p50) AS latency_p50,
                percentile_cont(0.5) WITHIN GROUP (ORDER BY r.latency_p99) AS latency_p99,
                percentile_cont(0.5) WITHIN GROUP (ORDER BY r.cost) AS cost
        FROM own_runs r JOIN experiments x ON x.store = r.store AND x.id = r.experiment_id
        JOIN environments e USING (environment)
        WHERE r.state = 'done' AND r.rate IS NULL
        GROUP BY r.host, r.store, r.point, e.class, x.created_at, x.id;
