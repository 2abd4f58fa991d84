-- Deletions as changes of their own, so that an event stream has them. What was deleted stays in its tables until it is
-- removed a portion at a time; `forgotten` is what no read returns any more.
CREATE TABLE deletions (
        change        INTEGER PRIMARY KEY,
        experiment_id INTEGER NOT NULL
) STRICT;
