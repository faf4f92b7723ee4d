"""See the README of vsr-candle-torch."""
