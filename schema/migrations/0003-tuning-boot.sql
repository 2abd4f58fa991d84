-- What was changed in one boot of the machine is gone with it: a row of another boot is no debt, and to pay it would change
-- the default of this one. NULL: written before this column was, of an unknown boot.
ALTER TABLE tunings ADD COLUMN boot_id TEXT;
