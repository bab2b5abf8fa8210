"""Measurements: always several systems in one run, so that ratios mean something."""
