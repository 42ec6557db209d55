"""Series over nights: charts, limits, what an alarm is blamed on, bridges between judges."""
