from claude_wire import decode
from claude_wire_kit.usage import UsageMeter

meter = UsageMeter()
meter.add(decode(b'{"type":"result","subtype":"success","session_id":"s","num_turns":2,"total_cost_usd":0.01}'))
print(meter.total.num_turns, meter.total.cost_usd)  # 2 0.01
