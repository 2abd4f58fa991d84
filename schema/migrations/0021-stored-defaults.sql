-- Earlier versions left fields out of a spec whose default has changed since. This writes the earlier defaults into
-- the stored specs, so that an absent field means the same in all of them: the order was `shuffled`, and messages of
-- streams over TCP carried a time stamp unless a rate was set. A field is written in its place in the writer's order,
-- because baselines compare specs as text. A changed spec is a change of its experiment, for readers and exporters.
UPDATE experiments SET merged = changed.new_merged, change = counters.value + changed.n
FROM (
        SELECT id, new_merged, row_number() OVER (ORDER BY id) AS n
        FROM (
                SELECT id, merged AS old_merged, CASE
                        WHEN stamp = 'false' THEN json_remove(ordered, '$.stamp')
                        WHEN stamp IS NOT NULL OR NOT stamped THEN ordered
                        -- `require` and others may stand in a placement, too: only the end of the text is theirs
                        WHEN substr(ordered, -length(tail)) = tail
                        THEN substr(ordered, 1, length(ordered) - length(tail)) || ',"stamp":true' || tail
                        ELSE json_set(ordered, '$.stamp', json('true')) END AS new_merged
                FROM (
                        SELECT id, merged, ordered, json_type(merged, '$.stamp') AS stamp,
                                json_type(merged, '$.rate') IS NULL
                                AND EXISTS (SELECT 1 FROM json_each(merged, '$.workload') WHERE value = 'stream')
                                AND EXISTS (SELECT 1 FROM json_each(merged, '$.transport') WHERE value = 'tcp')
                                AS stamped,
                                COALESCE(',"require":' || json_extract(merged, '$.require'), '')
                                || COALESCE(',"tune":' || json_extract(merged, '$.tune'), '')
                                || COALESCE(',"transport_options":' || json_extract(merged, '$.transport_options'), '')
                                || COALESCE(',"skip_impossible":' || json_type(merged, '$.skip_impossible'), '')
                                || COALESCE(',"seed":' || json_extract(merged, '$.seed'), '') || '}' AS tail
                        FROM (
                                SELECT id, merged, CASE
                                        WHEN json_type(merged, '$.order') IS NOT NULL THEN merged
                                        WHEN instr(merged, ',"repetitions":')
                                        THEN replace(merged, ',"repetitions":', ',"order":"shuffled","repetitions":')
                                        ELSE json_set(merged, '$.order', 'shuffled') END AS ordered
                                FROM (SELECT id, CASE WHEN json_valid(merged) THEN merged END AS merged FROM experiments)
                        )
                )
        )
        WHERE new_merged <> old_merged
) AS changed, counters
WHERE experiments.id = changed.id AND counters.name = 'change';
UPDATE counters SET value = (SELECT max(counters.value, COALESCE(max(change), 0)) FROM experiments)
WHERE name = 'change';

UPDATE experiments SET measures = json_remove(merged, '$.name', '$.seed', '$.repetitions')
WHERE measures IS NOT NULL AND json_valid(merged);
