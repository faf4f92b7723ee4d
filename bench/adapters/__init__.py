"""The adapters benchmark: six tasks by one base with adapters, against six merged models, in time, memory and bytes."""
