from claude_wire import ControlRequest, encode
from claude_wire.messages import InterruptRequest

line = encode(ControlRequest("r1", InterruptRequest()))
print(line)  # b'{"type":"control_request","request_id":"r1","request":{"subtype":"interrupt"}}\n'
