from claude_wire import AssistantMessage
from claude_wire_kit.events import Bridge

for event in Bridge().add(AssistantMessage.of("Hello!", session_id="s")):
    print(event.to_json())  # {"type":"claude_response","content":"Hello!","conversationId":"s"}
