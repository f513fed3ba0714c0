"""The controller of Models: the weights of a Model, fetched or explained."""
