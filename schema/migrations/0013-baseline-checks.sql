-- What became of a baseline: each later experiment of the same spec, held against it when it had finished.
--
-- Two specs are the same where they measure the same: they are equal but for a name, the seed and the number of
-- repetitions.
ALTER TABLE experiments ADD COLUMN measures TEXT; -- `merged` without these; no index of an expression can use JSON
UPDATE experiments SET measures = json_remove(merged, '$.name', '$.seed', '$.repetitions') WHERE json_valid(merged);
CREATE INDEX experiments_measures ON experiments (measures);

CREATE TABLE baseline_checks (
        name          TEXT NOT NULL REFERENCES baselines (name) ON DELETE CASCADE,
        experiment_id INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
        finished_at   INTEGER,                  -- of the experiment as it was checked: one that went on is checked anew;
                                                -- NULL: the ratios are still being written
        alike         INTEGER NOT NULL DEFAULT 0, -- 1: nothing in the two environments is unlike
        undecided     INTEGER NOT NULL DEFAULT 0, -- figures, of all rows
        faster        INTEGER NOT NULL DEFAULT 0,
        slower        INTEGER NOT NULL DEFAULT 0,
        equivalent    INTEGER NOT NULL DEFAULT 0,
        error         TEXT,                       -- why it could not be compared
        differences   TEXT NOT NULL DEFAULT '[]', -- JSON list of {key, baseline, candidate, unlike}
        PRIMARY KEY (name, experiment_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX baseline_checks_experiment ON baseline_checks (experiment_id);

CREATE TABLE baseline_ratios (
        name          TEXT NOT NULL,
        experiment_id INTEGER NOT NULL,
        figure        TEXT NOT NULL,
        point         TEXT NOT NULL,            -- JSON
        ratio         REAL NOT NULL,            -- of the experiment over the baseline
        low           REAL,                     -- of its interval; NULL: too few runs for one
        high          REAL,
        verdict       TEXT NOT NULL,
        PRIMARY KEY (name, point, figure, experiment_id),
        FOREIGN KEY (name, experiment_id) REFERENCES baseline_checks (name, experiment_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX baseline_ratios_check ON baseline_ratios (name, experiment_id);
