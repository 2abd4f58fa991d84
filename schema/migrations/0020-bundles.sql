-- Experiments of other hosts, as they came: the file, by the digest of what is in it. Their rows in the other tables are
-- made of it; nothing of theirs runs.
CREATE TABLE bundles (
        experiment_id INTEGER PRIMARY KEY REFERENCES experiments (id) ON DELETE CASCADE,
        taken_at      INTEGER NOT NULL,         -- milliseconds since the epoch, UTC
        sha256        TEXT NOT NULL UNIQUE,     -- of the JSON, in hex
        host          TEXT,                     -- a label; NULL: none was given
        file          BLOB NOT NULL             -- gzip
) STRICT;
