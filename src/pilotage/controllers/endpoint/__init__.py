"""The controller of ServingEndpoints: what a reconcile observes, decides, executes and writes to the status."""
