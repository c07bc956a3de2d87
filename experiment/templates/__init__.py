"""Study folders to start from, copied by `wrods new`."""
