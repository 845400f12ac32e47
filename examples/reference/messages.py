from claude_wire import AssistantMessage, InitMessage, ResultMessage, decode

for line in (
    b'{"type":"system","subtype":"init","model":"claude-opus-5-5","tools":[]}',
    b'{"type":"assistant","message":{"content":[{"type":"text","text":"Hello!"}]}}',
    b'{"type":"result","subtype":"success","num_turns":1,"total_cost_usd":0.01}',
):
    match decode(line):
        case InitMessage(model=model):
            print(model)  # claude-opus-5-5
        case AssistantMessage() as message:
            print(message.text)  # Hello!
        case ResultMessage() as message:
            print(message.ok, message.total_cost_usd)  # True 0.01
