from claude_wire.transcripts import Transcript, find_sessions

info = next(find_sessions("projects", newest_first=True))
print(info.project, info.first_prompt)  # /home/user/src/x in x
print([turn.prompt.message.content for turn in Transcript.load(info.path).turns])  # ['in x', 'x again']
