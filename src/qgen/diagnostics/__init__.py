"""Diagnostics: the value type, the catalogue of codes, one printer per format."""
