"""The front ends: who talks to the user or the script.

Each tells the core what happened and shows what the core says.
"""
