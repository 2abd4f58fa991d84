-- Points have a source from here on, in their order of fields before the placement; those of before were hot. With it a
-- point of before is the same text as one that is measured now, so that baselines go on.
UPDATE points SET point = replace(point, ',"placement":', ',"source":"hot","placement":')
WHERE json_extract(point, '$.workload') IN ('stream', 'pingpong') AND json_extract(point, '$.source') IS NULL;
UPDATE baseline_ratios SET point = replace(point, ',"placement":', ',"source":"hot","placement":')
WHERE json_extract(point, '$.workload') IN ('stream', 'pingpong') AND json_extract(point, '$.source') IS NULL;
