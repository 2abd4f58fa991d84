-- Pins and their removal as changes of their own, so that an event stream has them. A row for each name that was ever
-- pinned: its last change.
CREATE TABLE pin_changes (
        change        INTEGER PRIMARY KEY,
        name          TEXT NOT NULL UNIQUE,
        experiment_id INTEGER                   -- NULL: the name is free again
) STRICT;
