"""Papers, a folder each; :mod:`stimuli.papers` finds them and those of other packages."""
