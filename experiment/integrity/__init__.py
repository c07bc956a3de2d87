"""What keeps a study's record whole: the origin of items and designs, freezing, verifying, upkeep, withdrawal."""
