"""How probes read blocks of exact templates: the compiled loops."""
