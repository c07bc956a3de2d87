"""What calls to a provider cost: prices, and a budget that holds across runs."""
