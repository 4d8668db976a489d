"""The subcommands, one file each, and what they need."""
