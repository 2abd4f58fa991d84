-- When a sample begins, on CLOCK_MONOTONIC of the boot that its run was measured in, in ns: both ends have the same clock.
-- NULL: written before this column was.
ALTER TABLE samples ADD COLUMN begin_ns INTEGER;
