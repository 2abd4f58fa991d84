-- The place in the queue, a number of the sequence of changes: an experiment that is queued again goes to its end. An
-- id is never above the number of changes that there were.
ALTER TABLE experiments ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
UPDATE experiments SET turn = id;
-- What was done to an experiment under an Idempotency-Key after it had been submitted under another one, or none.
CREATE TABLE requests (
        key           TEXT PRIMARY KEY,
        experiment_id INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
        request       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX requests_experiment ON requests (experiment_id);
