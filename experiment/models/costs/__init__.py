"""Cost of calls to a provider: prices, and a budget that holds across runs."""
