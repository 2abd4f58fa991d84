-- Pinned experiments, by a person's names for them. One that is pinned is not deleted.
CREATE TABLE baselines (
        name          TEXT PRIMARY KEY,
        experiment_id INTEGER NOT NULL REFERENCES experiments (id),
        pinned_at     INTEGER NOT NULL          -- milliseconds since the epoch, UTC
) STRICT, WITHOUT ROWID;
CREATE INDEX baselines_experiment ON baselines (experiment_id);
