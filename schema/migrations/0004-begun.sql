-- Whether a run ever began, where its attempts do not tell: one that a stop interrupted in its first has 0 of them again.
ALTER TABLE runs ADD COLUMN begun INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET begun = 1 WHERE attempt = 0 AND started_at IS NOT NULL;
