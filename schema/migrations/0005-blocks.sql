-- The block that a run is of: every point once, in an order of its own. NULL: of a shuffled order, or stored before
-- there were blocks.
ALTER TABLE runs ADD COLUMN block INTEGER;
