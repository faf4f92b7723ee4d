"""See the README of vsr-router-policy."""
