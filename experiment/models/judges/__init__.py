"""Models that evaluate stored answers: a judge that reads each, and embeddings for similarity."""
