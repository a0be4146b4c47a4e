"""Alert rules, their tests and the dashboards, as typed code; what Prometheus and Grafana read is generated from it.

It knows metric names and nothing else of the platform, and nothing that runs knows it.
"""
