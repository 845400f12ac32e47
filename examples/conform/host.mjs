// Code for a JavaScript host: read the task from `claude-wire conform`, and print lines as it expects them.
import { setTimeout as sleep } from "node:timers/promises";

export const cli = process.env.CLAUDE_WIRE_CONFORM_CLI;
export const task = JSON.parse(process.env.CLAUDE_WIRE_CONFORM_TASK);

// Types of events and deltas, and types with subtypes, that the host knows.
const known = [
  ...["message_start", "message_delta", "message_stop", "content_block_start", "content_block_stop"],
  ...["thinking_delta", "signature_delta", "input_json_delta"],
  ...["system/session_state_changed", "system/task_started", "system/task_notification"],
];
const printed = new Set();

// Print a line.
export function show(type, line) {
  console.log(JSON.stringify({ ...line, type }));
  printed.add(type);
}

// Print the name of a type that the host does not know.
export function showUnknown(name) {
  if (!known.includes(name)) show("unknown", { name });
}

// Do the task's acts: yield each prompt when it must be sent, and call `interrupt`.
export async function* prompts(interrupt) {
  for (const act of task.acts) {
    if (act.send) yield act.send;
    while (act.until && !printed.has(act.until)) await sleep(10);
    if (act.interrupt) await interrupt();
  }
}
