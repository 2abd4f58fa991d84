-- An extension of which some runs are still to be inserted, a portion at a time: their order (the ordinals of their
-- points, 32 bits each, in the host's byte order), and how many of them there are already. The experiment's runs_total
-- has all of them from the first portion on.
CREATE TABLE extensions (
        experiment_id    INTEGER PRIMARY KEY REFERENCES experiments (id) ON DELETE CASCADE,
        first_repetition INTEGER NOT NULL,
        in_blocks        INTEGER NOT NULL,
        points           INTEGER NOT NULL,
        inserted         INTEGER NOT NULL,
        sequence         BLOB NOT NULL
) STRICT;
