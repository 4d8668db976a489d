"""The toolbox as data: what a tool is, what a call asks for, what it came to and how that is shown."""
