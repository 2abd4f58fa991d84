-- Where the points, runs and blocks of an extension begin; and the points that a search adds with it: pairs of an
-- ordinal, whose point it is, and a rate, 64 bits each, in the host's byte order.
ALTER TABLE extensions ADD COLUMN first_point INTEGER NOT NULL DEFAULT 0;
ALTER TABLE extensions ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
ALTER TABLE extensions ADD COLUMN block INTEGER NOT NULL DEFAULT 0;
ALTER TABLE extensions ADD COLUMN rates BLOB;
UPDATE extensions SET position = points * (first_repetition - 1), block = first_repetition;
