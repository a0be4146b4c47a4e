"""The data plane: what runs inside a Spark driver.

Nothing in here knows whether Kubernetes is there.
"""
