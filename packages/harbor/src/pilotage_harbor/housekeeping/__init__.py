"""What a cluster has controllers for and an API server cannot do without: collecting, emptying, serving CRDs."""
