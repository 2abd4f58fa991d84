-- Runs have the order of their positions in time, but for those that were tried again: which of these ran first and last.
CREATE INDEX runs_retried ON runs (experiment_id, started_at) WHERE attempt > 1;
