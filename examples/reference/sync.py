from claude_wire import ClaudeOptions, sync

with sync.open_session(ClaudeOptions(model="sonnet")) as session:
    result = session.ask("Hello")
    print(result.ok, result.total_cost_usd)  # True 0.0001
