"""The control plane: turns StreamJob and Topic resources into what runs. kopf at the edge, one writer.

`desired` and every `plan`, `state` and `status` module are pure: no client, no clock, no environment. `edge` talks.
"""
