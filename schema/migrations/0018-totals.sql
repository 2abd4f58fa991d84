-- What /health and /metrics count, kept as it changes: summing it up would read every experiment. Those that are among
-- the forgotten, which are still to be removed or not whole yet, do not count.
INSERT INTO counters (name, value)
        SELECT 'experiments_queued', COALESCE(SUM(state = 'queued'), 0) FROM experiments
                WHERE id NOT IN (SELECT experiment_id FROM forgotten)
        UNION ALL SELECT 'runs_done', COALESCE(SUM(runs_done), 0) FROM experiments
                WHERE id NOT IN (SELECT experiment_id FROM forgotten)
        UNION ALL SELECT 'runs_failed', COALESCE(SUM(runs_failed), 0) FROM experiments
                WHERE id NOT IN (SELECT experiment_id FROM forgotten);

CREATE VIEW experiment_totals (id, name, value) AS
        SELECT id, 'experiments_queued', state = 'queued' FROM experiments
        UNION ALL SELECT id, 'runs_done', runs_done FROM experiments
        UNION ALL SELECT id, 'runs_failed', runs_failed FROM experiments;

CREATE TRIGGER experiment_added AFTER INSERT ON experiments BEGIN
        UPDATE counters SET value = counters.value + t.value FROM experiment_totals AS t
                WHERE t.id = NEW.id AND counters.name = t.name;
END;

CREATE TRIGGER experiment_changed AFTER UPDATE OF state, runs_done, runs_failed ON experiments
        WHEN NEW.id NOT IN (SELECT experiment_id FROM forgotten) BEGIN
        UPDATE counters SET value = value + (NEW.state = 'queued') - (OLD.state = 'queued')
                WHERE name = 'experiments_queued';
        UPDATE counters SET value = value + NEW.runs_done - OLD.runs_done WHERE name = 'runs_done';
        UPDATE counters SET value = value + NEW.runs_failed - OLD.runs_failed WHERE name = 'runs_failed';
END;

CREATE TRIGGER experiment_removed BEFORE DELETE ON experiments
        WHEN OLD.id NOT IN (SELECT experiment_id FROM forgotten) BEGIN
        UPDATE counters SET value = counters.value - t.value FROM experiment_totals AS t
                WHERE t.id = OLD.id AND counters.name = t.name;
END;

CREATE TRIGGER experiment_forgotten AFTER INSERT ON forgotten BEGIN
        UPDATE counters SET value = counters.value - t.value FROM experiment_totals AS t
                WHERE t.id = NEW.experiment_id AND counters.name = t.name;
END;

CREATE TRIGGER experiment_whole AFTER DELETE ON forgotten BEGIN
        UPDATE counters SET value = counters.value + t.value FROM experiment_totals AS t
                WHERE t.id = OLD.experiment_id AND counters.name = t.name;
END;
