-- Experiments, their points and runs, and a sample per agent, thread and second.
-- `change` numbers every visible change in one sequence: an event stream is "rows whose change is above N".

CREATE TABLE sequence (
        name  TEXT PRIMARY KEY,
        value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO sequence VALUES ('change', 0);

CREATE TABLE experiments (
        id               INTEGER PRIMARY KEY AUTOINCREMENT,
        change           INTEGER NOT NULL,
        name             TEXT,
        state            TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
        error            TEXT,
        spec             TEXT NOT NULL,   -- as posted
        merged           TEXT NOT NULL,   -- preset and overrides as one object: what the runs follow
        seed             INTEGER NOT NULL,
        skipped          TEXT NOT NULL,   -- JSON list of {point, reason}
        version          TEXT NOT NULL,   -- ipclab that accepted it
        idempotency_key  TEXT UNIQUE,
        idempotency_hash TEXT,
        estimate_ns      INTEGER NOT NULL, -- planned length of one run, for the ETA
        created_at       INTEGER NOT NULL, -- milliseconds since the epoch, UTC
        started_at       INTEGER,
        finished_at      INTEGER
) STRICT;
CREATE INDEX experiments_state ON experiments (state, id);
CREATE INDEX experiments_change ON experiments (change);

CREATE TABLE points (
        id            INTEGER PRIMARY KEY AUTOINCREMENT,
        experiment_id INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
        ordinal       INTEGER NOT NULL,
        point         TEXT NOT NULL,      -- JSON
        UNIQUE (experiment_id, ordinal)
) STRICT;

CREATE TABLE runs (
        id            INTEGER PRIMARY KEY AUTOINCREMENT,
        change        INTEGER NOT NULL,
        experiment_id INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
        point_id      INTEGER NOT NULL REFERENCES points (id) ON DELETE CASCADE,
        repetition    INTEGER NOT NULL,   -- from 1
        position      INTEGER NOT NULL,   -- in the shuffled order, from 0
        state         TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled', 'interrupted')),
        attempt       INTEGER NOT NULL,   -- from 1 once started, 0 before
        error         TEXT,
        flags         TEXT NOT NULL,      -- JSON list
        agents        TEXT NOT NULL,      -- JSON list
        result        TEXT,               -- JSON object
        environment   TEXT,               -- JSON {before, after, daemon}
        started_at    INTEGER,
        finished_at   INTEGER,
        UNIQUE (experiment_id, position)
) STRICT;
CREATE INDEX runs_state ON runs (state, experiment_id, position);
CREATE INDEX runs_point ON runs (point_id);
CREATE INDEX runs_change ON runs (experiment_id, change);

CREATE TABLE samples (
        change        INTEGER PRIMARY KEY, -- each sample is its own change
        experiment_id INTEGER NOT NULL,
        run_id        INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        agent         TEXT NOT NULL,      -- role
        thread        INTEGER NOT NULL,
        second        INTEGER NOT NULL,
        interval_ns   INTEGER NOT NULL,
        messages      INTEGER NOT NULL,
        bytes         INTEGER NOT NULL,
        latency       BLOB,               -- HdrHistogram V2
        latency_sum   INTEGER,            -- ns, exact
        counters      TEXT                -- JSON object
) STRICT;
CREATE INDEX samples_run ON samples (run_id, second, agent, thread);
CREATE INDEX samples_experiment ON samples (experiment_id, change);
