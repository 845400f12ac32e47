from claude_wire_kit.supervisor import connect
from claude_wire_kit.web import Config, Profile, create_app

config = Config(profiles={"work": Profile(roots=["~/src"], options={"model": "sonnet"})})
app = create_app(connect(), config, token="a-long-random-secret", port=8765)  # an ASGI application
print([route.path for route in app.routes if "prompts" in route.path])  # ['/sessions/{id}/prompts']
