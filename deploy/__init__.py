"""Published files for a cluster: our CustomResourceDefinitions, a Helm chart, alerts. ``make manifests`` writes the
first two from the code; tests see that they are current.
"""
