"""A session or a recording at a terminal: its messages as lines on a page, questions to the person who sits there, and
the session itself, run or joined.
"""
