"""Words as strings of letters beside the other words of their language: vocabulary, neighbours, bigrams."""
