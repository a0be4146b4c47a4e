"""The version of the distribution, which is also the tag of its images."""

from importlib.metadata import version

VERSION = version("millrace")
