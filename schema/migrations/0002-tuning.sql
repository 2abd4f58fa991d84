-- Settings of the host that a run has changed and that are not put back yet: written before the change, taken away after
-- the setting was put back, so that a daemon that was killed in between finds here what it owes the host.
CREATE TABLE tunings (
        name       TEXT PRIMARY KEY,            -- 'numa_balancing'
        run_id     INTEGER NOT NULL,
        changed_at INTEGER NOT NULL,            -- milliseconds since the epoch, UTC
        original   TEXT NOT NULL,               -- as the kernel printed it
        wanted     TEXT NOT NULL
) STRICT, WITHOUT ROWID;
