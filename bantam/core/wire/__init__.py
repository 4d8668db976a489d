"""Bytes and JSON of a provider <-> messages, events and failures; where providers are."""
