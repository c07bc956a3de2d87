"""The item audit: what a reviewer would ask of a study's items, answered before the first participant comes."""
