"""Play a recording in place of the CLI. The main module is ``program``.

A test that replays a recording starts this program. Importing the whole library would take most of its run time, so the
package imports nothing from the library and little from the standard library. The program has the folder ``testing`` on
``sys.path``, so the modules import each other relatively. ``testing.recording`` and ``testing.replay`` also use them.
"""
