-- The calibration probes of a run, and what they say of the machine's state. NULL: measured before there were any, or the
-- run did not get so far.
ALTER TABLE runs ADD COLUMN probes TEXT;
