"""What becomes of a request to a resource: reading, watching, writing, deleting, and the forms they come and go in."""
