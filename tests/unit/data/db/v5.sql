-- A database as ipclab 0.1.0 left it (user_version 5): one experiment with three runs and two samples, a second one
-- deleted. Never to be changed: it stands for the files that are out there.
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE counters (
        name  TEXT PRIMARY KEY,
        value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters VALUES('change',20);
INSERT INTO counters VALUES('samples',2);
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
INSERT INTO experiments VALUES(1,18,'failed',42,3000000000,1767225600000,1767225601000,1767225610000,NULL,3,2,1,0,0,'a key','0.1.0','Version 1','pipe: broken','[]','{"name":"fixture","transport":"pipe"}','{"name": "fixture", "transport": "pipe"}');
CREATE TABLE points (
        id            INTEGER PRIMARY KEY AUTOINCREMENT,
        experiment_id INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
        ordinal       INTEGER NOT NULL,
        point         TEXT NOT NULL,            -- JSON
        UNIQUE (experiment_id, ordinal)
) STRICT;
INSERT INTO points VALUES(1,1,0,'{"workload":"stream","transport":"pipe","message_size":1,"threads":1,"copy_mode":"two-copy","engine":"syscall","placement":"default"}');
INSERT INTO points VALUES(2,1,1,'{"workload":"stream","transport":"pipe","message_size":2,"threads":1,"copy_mode":"two-copy","engine":"syscall","placement":"default"}');
INSERT INTO points VALUES(3,1,2,'{"workload":"stream","transport":"pipe","message_size":4,"threads":1,"copy_mode":"two-copy","engine":"syscall","placement":"default"}');
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
        environment   TEXT, begun INTEGER NOT NULL DEFAULT 0,                     -- JSON {before, after, daemon}
        UNIQUE (experiment_id, position)
) STRICT;
INSERT INTO runs VALUES(1,9,1,1,1,0,'done',1,1767225602000,1767225602500,NULL,'[]','{"messages":1}','[]',NULL,0);
INSERT INTO runs VALUES(2,13,1,2,1,1,'failed',1,1767225603000,1767225603500,'pipe: broken','[]',NULL,'[]',NULL,0);
INSERT INTO runs VALUES(3,17,1,3,1,2,'done',1,1767225604000,1767225604500,NULL,'[]','{"messages":1}','[]',NULL,0);
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
, begin_ns INTEGER) STRICT;
INSERT INTO samples VALUES(7,1,1,0,0,1000000123,10,40960,NULL,'receiver',NULL,NULL,NULL);
INSERT INTO samples VALUES(8,1,1,0,1,999999877,2,8192,5555,'initiator','{"voluntary_switches":4}',X'1c8493130000000600000000000000020000000000000001000000174876e8003ff0000000000000930602a10602',4711000000000);
CREATE TABLE forgotten (
        experiment_id INTEGER PRIMARY KEY
) STRICT;
INSERT INTO forgotten VALUES(2);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('experiments',2);
INSERT INTO sqlite_sequence VALUES('points',4);
INSERT INTO sqlite_sequence VALUES('runs',4);
CREATE INDEX experiments_state ON experiments (state, id);
CREATE INDEX experiments_change ON experiments (change);
CREATE INDEX runs_state ON runs (state, experiment_id, position);
CREATE UNIQUE INDEX runs_running ON runs (state) WHERE state = 'running';
CREATE INDEX runs_point ON runs (point_id);
CREATE INDEX runs_change ON runs (change);
CREATE INDEX runs_experiment_change ON runs (experiment_id, change);
CREATE INDEX samples_run ON samples (run_id);
CREATE INDEX samples_experiment ON samples (experiment_id);
CREATE TABLE tunings (
        name       TEXT PRIMARY KEY,            -- 'numa_balancing'
        run_id     INTEGER NOT NULL,
        changed_at INTEGER NOT NULL,            -- milliseconds since the epoch, UTC
        original   TEXT NOT NULL,               -- as the kernel printed it
        wanted     TEXT NOT NULL
, boot_id TEXT) STRICT, WITHOUT ROWID;
INSERT INTO tunings VALUES('numa_balancing',3,1763690000000,'0','1','5f2e86b0-7a1c-4a4e-9d55-0c1b7e3f6a21');
COMMIT;
PRAGMA user_version = 5;
