// What a host in JavaScript needs: the task that `claude-wire conform` has set, and the lines to print.
import { setTimeout as sleep } from "node:timers/promises";

export const cli = process.env.CLAUDE_WIRE_CONFORM_CLI;
export const task = JSON.parse(process.env.CLAUDE_WIRE_CONFORM_TASK);

// Types of events and deltas, and types with their subtypes, that a host has seen before.
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

// Print the type of something, unless it is known.
export function showUnknown(name) {
  if (!known.includes(name)) show("unknown", { name });
}

// Do what the task says: yield each prompt when it is to be sent, and call `interrupt`.
export async function* prompts(interrupt) {
  for (const act of task.acts) {
    if (act.send) yield act.send;
    while (act.until && !printed.has(act.until)) await sleep(10);
    if (act.interrupt) await interrupt();
  }
}
