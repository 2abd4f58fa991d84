-- Which of an experiment's runs ran first and last: one that was made again keeps its position. Only of those that are
-- done: an experiment may have 16 384 runs that wait or have failed, none of which is read or written for it.
CREATE INDEX runs_in_time ON runs (experiment_id, started_at, position) WHERE state = 'done';
