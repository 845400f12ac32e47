"""Programs built on claude_wire, and the command ``claude-wire``.

- ``supervisor``: a daemon that owns CLIs, so that sessions outlive their clients, and its client.
- ``events``: messages as what a front end shows.
- ``web``: sessions of a supervisor over HTTP, with a page.
- ``terminal``: sessions and recordings at a terminal.
- ``html``: a session as one static page.
- ``usage``: tokens and cost.
- ``survey``: what recordings hold and add up to.
- ``tap``: records what an SDK and the CLI say to each other.
- ``conform``: holds hosts, in any language, against scenarios of an agent.
- ``fleet``: supervisors on the nodes of a Ray cluster.
- ``commands``: the command ``claude-wire``, with a module for each subcommand.
"""
