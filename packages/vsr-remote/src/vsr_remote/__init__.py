"""See the README of vsr-remote."""
