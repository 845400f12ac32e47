from claude_wire import TurnError, decode
from claude_wire.errors import MaxTurnsError

result = decode(b'{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":3}')
try:
    result.raise_for_error()  # session.ask() raises the same error
except MaxTurnsError as error:
    print(isinstance(error, TurnError), error.result.num_turns)  # True 3
