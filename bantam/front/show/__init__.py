"""How a run is shown: to a person, or to a program."""
