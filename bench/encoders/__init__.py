"""The encoder benchmark: the forward of ModernBERT by text length, in time and in memory, against transformers."""
