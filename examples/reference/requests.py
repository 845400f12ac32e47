from claude_wire import ControlRequest, decode, encode
from claude_wire.messages import SetModelRequest

line = encode(ControlRequest("r1", SetModelRequest(model="opus")))
print(decode(line).request.model)  # opus
