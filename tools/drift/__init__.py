"""What another CLI, or the typings of another SDK, say that this version does not know.

``inside`` runs in a network namespace and drives the CLI through ``scenarios``, with the ``requests`` and ``flags``
that it may know; ``wire`` compares what was recorded, and the transcripts that ``disk`` has kept, with the classes.
``typings`` turns declarations in TypeScript into messages for the same comparison, with fractions for all numbers but
those of ``whole``. ``structs`` and ``report`` write down what is new.
"""
