"""Run a CLI without a network: a network namespace, and a fake Messages API that plays scripts.

``sandbox`` makes the namespace, ``fake_api`` is the API. ``make drift`` and ``make e2e`` use both.
"""
