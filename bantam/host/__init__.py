"""One conversation, wired, for whoever asks. Knows no terminal and no argv."""
