import polars

from claude_wire.columns import files, scan

messages = polars.DataFrame(scan(files("projects"), "messages", ["type", "model"]))
print(messages["model"].drop_nulls().unique().sort().to_list())  # ['claude-haiku-5-5', 'claude-opus-5-5']
