"""From materials to items: pure functions that a study's build calls, a module for each kind of material."""
