-- Whether the experiment looks for the highest rate that keeps a limit; `until` then says how far it has come.
ALTER TABLE experiments ADD COLUMN searches INTEGER NOT NULL DEFAULT 0;
-- Messages per second of the point's runs, as a search has chosen them; NULL: the rate of the spec, or a closed loop.
ALTER TABLE points ADD COLUMN rate INTEGER;
