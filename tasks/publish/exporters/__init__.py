"""Publications in the forms of trackers and hubs, each behind one file here. No other file knows their clients."""
