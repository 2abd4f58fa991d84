-- Which store this is: a UUID (version 4), made once. The state directory notes it beside the database, so that a database
-- that is not this one is recognised.
CREATE TABLE identity (
        store TEXT NOT NULL
) STRICT;
INSERT INTO identity
        SELECT substr(x, 1, 8) || '-' || substr(x, 9, 4) || '-4' || substr(x, 14, 3) || '-'
               || substr('89ab', 1 + (random() & 3), 1) || substr(x, 18, 3) || '-' || substr(x, 21, 12)
        FROM (SELECT lower(hex(randomblob(16))) AS x);
