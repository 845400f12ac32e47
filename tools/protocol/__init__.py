"""Write the folder ``protocol``, which describes the protocol as data for programs in any language: ``make protocol``.

``schema`` and ``vocabulary`` make JSON Schemas of the message classes, ``index`` lists their definitions, and
``tables`` has the flags of the CLI and the states of a run. ``corpus`` makes test cases: lines and the messages that a
decoder must return for them. The lines come from ``samples``, from ``recorded`` sessions, and from ``streams`` and
``parts``, which are written by hand. ``compare`` finds the differences between two such folders for the changelog, and
``archive`` packs a folder for a release.
"""
