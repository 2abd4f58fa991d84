-- What a search looks through: one that read every spec read thousands of megabytes.
CREATE TABLE search_texts (
        experiment_id INTEGER PRIMARY KEY REFERENCES experiments (id) ON DELETE CASCADE,
        text          TEXT NOT NULL             -- of the spec as posted, in lower case, at most 4096 bytes
) STRICT;
INSERT INTO search_texts SELECT experiment_id, search_text(spec) FROM specs; -- a function of the daemon's
