"""What a CLI needs to run where it can reach nobody: a network namespace, and a Messages API that plays scripts.

``sandbox`` makes the namespace, ``fake_api`` is the API. ``make drift`` and ``make e2e`` use both.
"""
