-- A spec may have a megabyte, and an index of such texts is as large again: an insertion compared it with several of
-- them, each read from the disk. Length and beginning find the few among which the whole text decides.
DROP INDEX experiments_measures;
CREATE INDEX experiments_measures ON experiments (length(measures), substr(measures, 1, 100));
