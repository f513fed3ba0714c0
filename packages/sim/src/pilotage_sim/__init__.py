"""The simulator: controllers, the real API server's core and small models of a cluster's controllers, in virtual time.

It finds out what a controller does when things go wrong, by making each of them go wrong, one after the other and two
at a time: crashes around every write, every class of error at every call, stale reads, broken watches. A run is a
function of its seed and its fault plan, so a failure can be replayed. Nothing here decides anything for the product.
`docs/simulator.md` says how it is used. The names are in the modules: `loop`, `world`, `faults`, `explore`, `models`,
`adversaries`.
"""
