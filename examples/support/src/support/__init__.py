"""A support desk, as far as its background jobs need one."""
