"""How the adapters beside this package were trained, scored and described."""
