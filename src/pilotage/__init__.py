"""Model serving on Kubernetes whose departures are as safe as its arrivals.

The packages below are layers; an import goes down, never up (ARCHITECTURE.md has the map, a test enforces it).
"""

__version__ = "0.1.0.dev0"
