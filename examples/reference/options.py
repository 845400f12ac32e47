from claude_wire import ClaudeOptions

options = ClaudeOptions(cli_path="claude", model="sonnet")
print(*options.argv())  # claude --output-format stream-json --verbose --model sonnet --input-format stream-json
