"""What is kept of a run, and what can be asked of it: the log, tapes, a comparison of two."""
