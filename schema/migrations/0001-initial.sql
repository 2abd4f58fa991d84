-- Experiments, their points and runs, and a sample per agent, thread and second.
--
-- `change` numbers every visible change in one sequence, and no two records share a number: an event stream is "rows
-- whose change is above N". Ids are AUTOINCREMENT: one that was handed out is never handed out again, whatever is
-- deleted. Within a table the small columns come first, so that a scan need not walk through the long texts.

CREATE TABLE counters (
        name  TEXT PRIMARY KEY,
        value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters VALUES
        ('change', 0),  -- the newest change
        ('samples', 0); -- rows in samples: counting them would read them all

CREATE TABLE experiments (
        id                  INTEGER PRIMARY KEY AUTOINCREMENT,
        change              INTEGER NOT NULL,
        state               TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
        seed                INTEGER NOT NULL,
        estimate_ns         INTEGER NOT NULL,   -- planned length of one run, for the ETA
        created_at          INTEGER NOT NULL,   -- milliseconds since the epoch, UTC
        started_at          INTEGER,
        finished_at         INTEGER,
        cancel_requested_at INTEGER,            -- outlives a crash before the running run has stopped
        runs_total          INTEGER NOT NULL,   -- these five follow the runs' states, in the same transactions
        runs_done           INTEGER NOT NULL DEFAULT 0,
        runs_failed         INTEGER NOT NULL DEFAULT 0,
        runs_cancelled      INTEGER NOT NULL DEFAULT 0,
        measured_ms         INTEGER NOT NULL DEFAULT 0, -- true length of the done runs together
        idempotency_key     TEXT UNIQUE,
        version             TEXT NOT NULL,      -- ipclab that accepted it
        name                TEXT,
        error               TEXT,
        skipped             TEXT NOT NULL,      -- JSON list of {point, reason}
        merged              TEXT NOT NULL,      -- preset and overrides as one object: what the runs follow
        spec                TEXT NOT NULL       -- as posted
) STRICT;
CREATE INDEX experiments_state ON experiments (state, id);
CREATE INDEX experiments_change ON experiments (change);

CREATE TABLE points (
        id            INTEGER PRIMARY KEY AUTOINCREMENT,
        experiment_id INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
        ordinal       INTEGER NOT NULL,
        point         TEXT NOT NULL,            -- JSON
        UNIQUE (experiment_id, ordinal)
) STRICT;

CREATE TABLE runs (
        id            INTEGER PRIMARY KEY AUTOINCREMENT,
        change        INTEGER NOT NULL,
        experiment_id INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
        point_id      INTEGER NOT NULL REFERENCES points (id) ON DELETE CASCADE,
        repetition    INTEGER NOT NULL,         -- from 1
        position      INTEGER NOT NULL,         -- in the shuffled order, from 0
        state         TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled', 'interrupted')),
        attempt       INTEGER NOT NULL DEFAULT 0, -- from 1 once started, 0 before
        started_at    INTEGER,
        finished_at   INTEGER,
        error         TEXT,
        flags         TEXT NOT NULL DEFAULT '[]', -- JSON list
        result        TEXT,                     -- JSON object
        agents        TEXT NOT NULL DEFAULT '[]', -- JSON list
        environment   TEXT,                     -- JSON {before, after, daemon}
        UNIQUE (experiment_id, position)
) STRICT;
CREATE INDEX runs_state ON runs (state, experiment_id, position);
CREATE UNIQUE INDEX runs_running ON runs (state) WHERE state = 'running'; -- two at once would measure each other
CREATE INDEX runs_point ON runs (point_id);
CREATE INDEX runs_change ON runs (change);
CREATE INDEX runs_experiment_change ON runs (experiment_id, change);

-- No foreign key: the samples of a forgotten experiment go a few thousand at a time, when nothing is measured.
CREATE TABLE samples (
        change        INTEGER PRIMARY KEY,      -- each sample is its own change
        experiment_id INTEGER NOT NULL,
        run_id        INTEGER NOT NULL,
        thread        INTEGER NOT NULL,
        second        INTEGER NOT NULL,
        interval_ns   INTEGER NOT NULL,
        messages      INTEGER NOT NULL,
        bytes         INTEGER NOT NULL,
        latency_sum   INTEGER,                  -- ns, exact; of latency
        agent         TEXT NOT NULL,            -- role
        counters      TEXT,                     -- JSON object
        latency       BLOB                      -- HdrHistogram V2
) STRICT;
CREATE INDEX samples_run ON samples (run_id);   -- the rowid, change, is part of every index
CREATE INDEX samples_experiment ON samples (experiment_id);

-- Deleted experiments whose samples are still to be removed.
CREATE TABLE forgotten (
        experiment_id INTEGER PRIMARY KEY
) STRICT;
