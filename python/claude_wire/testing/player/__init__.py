"""The program that plays a recording in place of the CLI, with the code that reads recordings.

A stand-in is started for every test, and importing the package takes several times as long as the rest. So this folder
is run without the package around it: it needs the standard library only, imports little of it, and its modules import
each other relatively. ``recording`` and ``replay`` are the typed ways to it.
"""
