-- The true level of a ratio's interval. NULL: it has none, or was stored before.
ALTER TABLE baseline_ratios ADD COLUMN level REAL;
