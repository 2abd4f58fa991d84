-- The texts of an experiment, which never change: together they may have megabytes, and SQLite writes a row as a whole
-- whenever a column of it changes, as with each run that starts or ends.
CREATE TABLE specs (
        experiment_id INTEGER PRIMARY KEY REFERENCES experiments (id) ON DELETE CASCADE,
        skipped       TEXT NOT NULL,            -- JSON list of {point, reason}
        merged        TEXT NOT NULL,            -- preset and overrides as one object: what the runs follow
        spec          TEXT NOT NULL,            -- as posted
        measures      TEXT                      -- `merged` without name, seed and repetitions; NULL: never compared
) STRICT;
INSERT INTO specs SELECT id, skipped, merged, spec, measures FROM experiments;
DROP INDEX experiments_measures;
CREATE INDEX specs_measures ON specs (length(measures), substr(measures, 1, 100));
ALTER TABLE experiments DROP COLUMN skipped;
ALTER TABLE experiments DROP COLUMN merged;
ALTER TABLE experiments DROP COLUMN spec;
ALTER TABLE experiments DROP COLUMN measures;
