-- How far an experiment has come that repeats its blocks until its rows are known well enough: JSON {state, looks, …}.
-- While its state is running, the experiment is not over though all of its runs are. NULL: it has so many
-- repetitions as its spec says.
ALTER TABLE experiments ADD COLUMN until TEXT;
