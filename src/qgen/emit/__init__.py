"""The only layer that writes: what to write, writing it, the lock, orphans."""
