from claude_wire import Decoder

decoder = Decoder()
messages = decoder.feed(b'{"type":"keep_alive"}\n{"type":"res')
messages += decoder.feed(b'ult","subtype":"success","result":"Hello!"}\n')
print([type(message).__name__ for message in messages])  # ['KeepAlive', 'ResultSuccess']
print(messages[1].result, decoder.stats.lines)  # Hello! 2
