"""Makes rows of tables from what is stored: trials, failed ones, items, regions."""
