"""A Kubernetes cluster on this machine for development and tests. Tooling only: nothing that is shipped imports it."""
