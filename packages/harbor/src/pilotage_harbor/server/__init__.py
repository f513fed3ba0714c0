"""Harbor over HTTP: connections, TLS, who asks, and the process that serves. What is asked is not understood here."""
