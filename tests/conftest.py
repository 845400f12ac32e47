"""Settings that all tests share."""

from suite import *  # noqa: F403 - its hooks
