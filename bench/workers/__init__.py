"""One process per thing that is measured; each module is run with ``python -m``."""
