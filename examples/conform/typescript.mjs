// The TypeScript SDK as a host. Run it in a folder that has the SDK: claude-wire conform -- node examples/conform/typescript.mjs
import { createRequire } from "node:module";
import { cli, prompts, show, showUnknown, task } from "./host.mjs";

const installed = createRequire(`${process.cwd()}/`);
const { createSdkMcpServer, query, tool } = await import(installed.resolve("@anthropic-ai/claude-agent-sdk"));
const { z } = await import(installed.resolve("zod"));

function showMessage(message) {
  const { type, subtype, event } = message;
  if (type === "assistant" || type === "user") [message.message.content].flat().forEach((block) => showBlock(type, block));
  else if (type === "result") show(type, message);
  else if (type === "rate_limit_event") show("rate_limit", message.rate_limit_info);
  else if (subtype === "init") show("init", message);
  else if (event?.delta?.type === "text_delta") show("delta", { text: event.delta.text });
  else showUnknown(event?.delta?.type ?? event?.type ?? (subtype ? `${type}/${subtype}` : type));
}

function showBlock(type, block) {
  if (type === "user" && block.type !== "tool_result") show("user", { text: block.text ?? block });
  else if (["text", "thinking", "tool_use", "tool_result"].includes(block.type)) show(block.type, block);
  else showUnknown(block.type);
}

function calculate(name, run) {
  return async (given) => {
    show("mcp", { name, arguments: given });
    return { content: [{ type: "text", text: run(given) }], isError: name === "fail" };
  };
}
const add = tool("add", "Adds.", { a: z.number(), b: z.number() }, calculate("add", ({ a, b }) => `${a + b}`));
const fail = tool("fail", "Fails.", {}, calculate("fail", () => "out of order"));

async function hook({ hook_event_name }) {
  show("hook", { hook_event_name });
  return task.hooks[hook_event_name];
}

async function canUseTool(tool_name, input) {
  show("permission", { tool_name, input });
  return { updatedInput: input, ...task.permission };
}

async function* messages() {
  for await (const content of prompts(() => run.interrupt()))
    yield { type: "user", message: { role: "user", content }, parent_tool_use_id: null };
}

const options = {
  pathToClaudeCodeExecutable: cli,
  settingSources: [],
  includePartialMessages: task.partial,
  resume: task.resume,
  extraArgs: task.replay && { "replay-user-messages": null },
  outputFormat: task.schema && { type: "json_schema", schema: task.schema },
  canUseTool: task.permission && canUseTool,
  hooks: Object.fromEntries(Object.keys(task.hooks ?? {}).map((event) => [event, [{ hooks: [hook] }]])),
  mcpServers: task.mcp && { calc: createSdkMcpServer({ name: "calc", tools: [add, fail] }) },
};
const run = query({ prompt: messages(), options });
try {
  for await (const message of run) showMessage(message);
} catch (error) {
  show("error", { message: String(error.message ?? error) });
}
