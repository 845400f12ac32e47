"""Makes the folder ``protocol``, the protocol as data for programs in any language: ``make protocol``.

``schema`` and ``vocabulary`` make JSON Schemas of the message classes, ``index`` lists their definitions, and
``tables`` has the flags and the states of a run. ``corpus`` makes lines with what they mean: of ``samples``, of
``recorded`` lines, and of ``streams`` and ``parts``, which are written by hand. ``compare`` says what differs between
two such folders, for the changelog, and ``archive`` packs one for a release.
"""
