"""Hidden states that a study has kept, maps of conditions and layers made from them, and figures over layers."""
