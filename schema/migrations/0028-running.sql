-- A run of which a damaged page makes the row unwritable stays "running": the store itself looks whether another one is.
DROP INDEX runs_running;
