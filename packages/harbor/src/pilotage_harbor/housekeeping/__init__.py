"""The controllers that an API server cannot do without: garbage collector, namespace deletion, serving of CRDs."""
