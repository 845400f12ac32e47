"""Programs built on claude_wire, and the command ``claude-wire``.

- ``supervisor``: a daemon that runs CLIs, so that sessions outlive the programs that use them, and a client for it.
- ``events``: translates messages into the events that a front end shows.
- ``web``: serves the sessions of a supervisor over HTTP, with a page for browsers.
- ``terminal``: shows sessions and recordings in a terminal.
- ``html``: shows a session as one static HTML page.
- ``usage``: counts tokens and cost.
- ``survey``: examines recordings: finds unknown fields, adds up, and searches.
- ``tap``: records what an SDK and the CLI send to each other.
- ``conform``: checks hosts, written in any language, in scenarios that have an agent each.
- ``fleet``: runs a supervisor on each node of a Ray cluster.
- ``commands``: the command ``claude-wire``, with a module for each subcommand.
"""
