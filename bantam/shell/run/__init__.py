"""What runs or waits: processes, timers."""
