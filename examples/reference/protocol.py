from claude_wire import Decoder, peek

lines = b'{"type":"system","subtype":"status"}\n{"type":"result","subtype":"success","result":"Hello!"}\n'
print(peek(lines.splitlines()[0]))  # system/status
for message in Decoder(only={"result"}).feed(lines):
    print(message.result)  # Hello!
