"""Local mode: the processes, the run and the demo on this machine. Knows nothing of Kubernetes or Spark."""
