"""Write the folder ``protocol``: ``make protocol``. It describes the protocol as JSON, for programs in any language.

``schema`` and ``vocabulary`` turn the message classes into JSON Schemas, ``index`` lists the definitions of these
schemas, and ``tables`` lists the CLI's flags and the states of a run. ``corpus`` generates test cases: lines, and the
result that a decoder must return for each. The lines come from ``samples`` (generated), from ``recorded`` sessions, and
from ``streams`` and ``parts`` (written by hand). ``compare`` writes the changelog, and ``archive`` packs a release.
"""
