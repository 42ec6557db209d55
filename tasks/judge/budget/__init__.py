"""What asking costs: prices, tokens, the budget of a run, attempts, forecasts."""
