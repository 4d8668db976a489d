"""What is kept on disk, and read from it."""
