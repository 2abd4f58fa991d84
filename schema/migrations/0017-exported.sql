-- The newest change up to which an exporter has acknowledged that everything is stored elsewhere, too. One row; NULL: nothing
-- was ever acknowledged.
CREATE TABLE exported (
        change INTEGER
) STRICT;
INSERT INTO exported VALUES (NULL);
