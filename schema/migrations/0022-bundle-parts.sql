-- The file of a bundle in parts: one of ten thousand runs is stored, read and removed a portion at a time.
CREATE TABLE bundle_parts (
        experiment_id INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
        part          INTEGER NOT NULL,         -- from 0
        data          BLOB NOT NULL,            -- of gzip
        PRIMARY KEY (experiment_id, part)
) STRICT;
INSERT INTO bundle_parts SELECT experiment_id, 0, file FROM bundles;
ALTER TABLE bundles DROP COLUMN file;
