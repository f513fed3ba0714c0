"""The whole system on one machine: who runs what, in which order it comes up, and how it goes down with proof."""
