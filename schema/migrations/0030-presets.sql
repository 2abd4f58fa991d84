-- The preset that the spec names, of what was measured here: the last experiment of each is found without a look at all
-- the others.
ALTER TABLE experiments ADD COLUMN preset TEXT;
UPDATE experiments SET preset = (SELECT CASE WHEN json_valid(spec) THEN spec ->> '$.preset' END FROM specs
                                 WHERE experiment_id = id)
        WHERE id IN (SELECT experiment_id FROM search_texts WHERE instr(text, '"preset"') > 0)
        AND id NOT IN (SELECT experiment_id FROM bundles);
CREATE INDEX experiments_preset ON experiments (preset, state, id) WHERE preset IS NOT NULL;
