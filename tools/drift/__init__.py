"""Find what another CLI, or the typings of another SDK, have in their protocol that this version does not know.

``inside`` runs the CLI in a network namespace, and drives it through ``scenarios`` with all ``requests`` and
``flags``. ``wire`` compares the recorded sessions, and the transcripts that ``disk`` has kept, with the message
classes. ``typings`` makes sample messages of TypeScript declarations for the same comparison; their numbers are
fractions, except those in ``whole``. ``report`` and ``structs`` print what is new.
"""
