"""One file per migration, oldest first."""
