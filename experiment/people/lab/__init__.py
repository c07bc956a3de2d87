"""The lab: stations with a secure context, and sessions under the number that the experimenter enters."""
