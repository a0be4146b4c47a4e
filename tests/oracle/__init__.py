"""A second implementation of docs/concepts.md, written apart from the runtime and compared with it.

Plain Python over whole logs: no batches, no state, no engine. It must never import the runtime.
"""
