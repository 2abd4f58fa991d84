-- How often and in which order points are measured is not what is measured: experiments with `until` are held against a
-- baseline without, too.
UPDATE specs SET measures = json_remove(merged, '$.name', '$.seed', '$.repetitions', '$.order', '$.until', '$.skip_impossible')
WHERE measures IS NOT NULL AND json_valid(merged)
  AND measures IS NOT json_remove(merged, '$.name', '$.seed', '$.repetitions', '$.order', '$.until', '$.skip_impossible');
