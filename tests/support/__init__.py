"""What tests share: a proxy that breaks connections on purpose, transports without a network, kinds, and waiting."""
