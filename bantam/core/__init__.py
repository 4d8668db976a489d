"""The pure core: what happens next, decided without I/O, clocks or randomness.

Reading order: messages, events, effects, state, loop, tree; then the leaves in any order.
"""
