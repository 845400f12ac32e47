from claude_wire import StreamEvent, decode

message = decode(
    b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,'
    b'"delta":{"type":"text_delta","text":"Hel"}}}'
)
assert isinstance(message, StreamEvent)
print(message.text_delta, message.event.index)  # Hel 0
