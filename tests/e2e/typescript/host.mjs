// A host of the TypeScript SDK: runs one conversation with an agent, and prints what it saw as JSON.
//
//     node host.mjs AGENT < conversation.json
//
// The form of a conversation and of what was seen: agent_conversations.py.

import { text } from "node:stream/consumers";
import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";

const [agent] = process.argv.slice(2);
const conversation = JSON.parse(await text(process.stdin));
const wanted = conversation.options;
const seen = [];
const calls = [];

function plain(message) {
  switch (message.type) {
    case "system":
      return message.subtype === "init"
        ? [{ init: { model: message.model, mode: message.permissionMode, tools: message.tools } }]
        : [];
    case "stream_event":
      return message.event.delta?.type === "text_delta" ? [{ delta: message.event.delta.text }] : [];
    case "assistant":
      return message.message.content.map((block) =>
        block.type === "tool_use"
          ? { tool_use: block.name, input: block.input }
          : { [block.type]: block[block.type], ...(message.parent_tool_use_id && { subagent: true }) });
    case "user":
      return [message.message.content].flat().map((block) =>
        block.type === "tool_result"
          ? { tool_result: block.content, is_error: block.is_error ?? null }
          : { user: block.text ?? block });
    case "result":
      return [{ result: message.subtype, text: message.result ?? null, is_error: message.is_error,
                output: message.structured_output ?? null }];
    default:
      return [];
  }
}

function hooks() {
  const answers = Object.entries(wanted.hooks ?? {}).map(([event, answer]) => {
    const hook = async (input) => {
      calls.push(["hook", event, input.tool_name ?? null]);
      return answer;
    };
    return [event, [{ hooks: [hook] }]];
  });
  return Object.fromEntries(answers);
}

async function canUseTool(name, input) {
  calls.push(["permission", name, input]);
  const answer = wanted.permission[name];
  return answer.behavior === "allow" ? { updatedInput: input, ...answer } : answer;
}

function calculator() {
  const add = tool("add", "Adds.", { a: z.number(), b: z.number() }, async ({ a, b }) => {
    calls.push(["mcp", "add", { a, b }]);
    return { content: [{ type: "text", text: String(a + b) }] };
  });
  const fail = tool("fail", "Fails.", {}, async () => {
    calls.push(["mcp", "fail", {}]);
    return { content: [{ type: "text", text: "out of order" }], isError: true };
  });
  return createSdkMcpServer({ name: "calc", version: "1.0.0", tools: [add, fail] });
}

// Prompts are given one by one, and the input ends with the conversation. A prompt is sent when the SDK asks for the next.
let give;
const given = [];
async function* prompts() {
  for (;;) {
    while (given.length === 0) await new Promise((resolve) => (give = resolve));
    const { content, sent } = given.shift();
    if (content === null) return sent();
    yield { type: "user", message: { role: "user", content }, parent_tool_use_id: null, session_id: "",
            uuid: crypto.randomUUID() };
    sent();
  }
}
function send(content) {
  return new Promise((sent) => {
    given.push({ content, sent });
    give?.();
  });
}

const options = {
  pathToClaudeCodeExecutable: agent,
  settingSources: [],
  includePartialMessages: wanted.partial ?? false,
  hooks: hooks(),
  ...(wanted.permission && { canUseTool }),
  ...(wanted.mcp && { mcpServers: { calc: calculator() }, allowedTools: ["mcp__calc__add", "mcp__calc__fail"] }),
  ...(wanted.delivery && { mcpServersDelivery: wanted.delivery,
                           mcpServers: { files: { command: "none-such", args: [] } } }),
  ...(wanted.schema && { outputFormat: { type: "json_schema", schema: wanted.schema } }),
  stderr: (data) => process.stderr.write(data),
};
const run = query({ prompt: wanted.string ?? prompts(), options });

async function until(found) {
  for (;;) {
    const { value, done } = await run.next();
    if (done) return;
    const told = plain(value);
    seen.push(...told);
    if (told.some(found)) return;
  }
}

const acts = {
  send,
  result: async () => until((one) => "result" in one),
  said: async (words) => until((one) => one.text === words && !("result" in one)),
  delta: async (words) => until((one) => one.delta === words),
  interrupt: async () => { await run.interrupt(); },
  set_model: async (model) => { await run.setModel(model); },
  set_permission_mode: async (mode) => { await run.setPermissionMode(mode); },
  // Methods of the query by name, with their arguments: what each gives, or why it fails.
  ask: async ([method, ...given]) => {
    try { seen.push({ asked: method, answer: (await run[method](...given)) ?? null }); }
    catch (caught) { seen.push({ asked: method, refused: String(caught.message ?? caught) }); }
  },
  end: async () => { if (!wanted.string) await send(null); await until(() => false); },
};

let error = null;
try {
  for (const [act, value] of conversation.acts) await acts[act](value);
} catch (caught) {
  error = String(caught.message ?? caught);
}
console.log(JSON.stringify({ seen, calls, error }));
process.exit(0);
