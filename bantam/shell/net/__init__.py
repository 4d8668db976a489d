"""What goes over the network: the API, and a model on this machine."""
