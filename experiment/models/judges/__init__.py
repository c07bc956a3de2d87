"""Models that say something of answers already stored: a judge that is asked about each, vectors that are compared."""
