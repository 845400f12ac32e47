"""Find parts of the protocol that another CLI, or another SDK's typings, have and this version does not know.

``inside`` runs the CLI in a network namespace, and takes it through ``scenarios`` with all ``requests`` and ``flags``.
``wire`` compares the recorded sessions, and the transcripts that ``disk`` kept, with the message classes. ``typings``
converts TypeScript declarations to sample messages for the same comparison. In the samples, numbers are fractions,
except for the fields in ``whole``. ``floors`` has the minimum count for each source of data. ``report`` and ``structs``
print what is new.
"""
