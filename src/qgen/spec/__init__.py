"""The language: text to data with positions, its shape, and what is refused."""
