"""Letter geometry: what a letter looks like when turned, mirrored, added to or cut, answered by rendering it."""
