from claude_wire import AssistantMessage, TextBlock, ToolUseBlock, decode

message = decode(
    b'{"type":"assistant","message":{"content":['
    b'{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}'
)
assert isinstance(message, AssistantMessage)
for block in message.content:
    match block:
        case TextBlock(text=text):
            print(text)  # I look.
        case ToolUseBlock(name=name, input=given):
            print(name, given)  # Bash {'command': 'ls'}
