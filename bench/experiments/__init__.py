"""The end of an experiment under load, by several products: failed requests, cut streams, and when the Service went.

`python -m bench.experiments` plays each scenario for each product on one real control plane, with a Contour and two
real Envoys of which one hears nothing for two seconds, and prints one table.

- `subject` is what a product has to implement; `ours` does so for Pilotage, `argo` for Argo Rollouts.
- `stage` has the network: Contour, the Envoys, the load, and a kubelet that starts a server for each pod. `gateway` has
  one with `pilotage gateway` instead, whose Envoy is started by `held_envoy`, so that its feed can be held.
- `proxies` reads from an Envoy whether it still routes to a Service; `trial` plays one scenario and counts.
"""
