"""What the spine is written in: records, ropes, settings, texts, and a problem as a value."""
