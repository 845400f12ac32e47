"""The program that plays a recording in place of the CLI, with the code that reads recordings.

A stand-in for the CLI is started for every test, and importing the whole library would take most of its time. So this
package runs without the library. It needs only a small part of the standard library, and its modules import each other
relatively. The library uses it through ``testing.recording`` and ``testing.replay``.
"""
