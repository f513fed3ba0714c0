"""Runtime of controllers: workqueue, informers, controllers, leader election, Events, conditions, metrics.

client-go's semantics, on one event loop. Nothing here knows what any controller is for. Time comes from the running
loop and randomness from an injected seed, so that a loop with virtual time can drive all of it; no thread is started.
"""
