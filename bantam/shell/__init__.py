"""The shell: performs what the core decided, one handler a file. It may not decide anything itself."""
