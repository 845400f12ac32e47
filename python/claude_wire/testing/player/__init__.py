"""The program that plays a recording in place of the CLI, with the code that reads recordings.

A stand-in for the CLI is started for every test, and importing the whole package would take several times as long as
everything else. So this folder runs without the package around it. It needs only a small part of the standard library,
and its modules import each other relatively. ``recording`` and ``replay`` are its typed interface.
"""
