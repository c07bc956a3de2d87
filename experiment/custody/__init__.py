"""What keeps a study's record whole: freezing, verifying, upkeep, withdrawal."""
