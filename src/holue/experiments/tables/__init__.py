"""The results of experiments as tables and pages."""
