"""The shared kernel of Millrace: resource models, Kafka access, metric names, command line and local mode.

It knows nothing of the job runtime, the lag observer or the operator; they all know it.
"""
