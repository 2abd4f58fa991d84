-- Settings of the host that a run has changed and that are not restored yet. A row is written before the change and
-- removed after the restore, so that the next daemon finds here what one that was killed in between has not restored.
CREATE TABLE tunings (
        name       TEXT PRIMARY KEY,            -- 'numa_balancing'
        run_id     INTEGER NOT NULL,
        changed_at INTEGER NOT NULL,            -- milliseconds since the epoch, UTC
        original   TEXT NOT NULL,               -- as the kernel printed it
        wanted     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
