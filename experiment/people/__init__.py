"""People: the participants' pages and their interface, the experimenter's dashboard, and the preview."""
