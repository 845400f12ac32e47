//! A host without any SDK: `claude-wire conform -- target/conform/debug/claude-wire-conform-host`.

use std::collections::{HashSet, VecDeque};
use std::io::{BufRead, BufReader, Result, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::{env, thread, time::Duration};

use serde_json::{from_str, json, Value};

/// Types of events and deltas, and types with subtypes, that this host knows.
const KNOWN: &str = " message_start message_delta message_stop content_block_start content_block_stop thinking_delta \
    signature_delta input_json_delta system/task_started system/task_notification ";
const FLAGS: &str = "-p --input-format stream-json --output-format stream-json --verbose";

struct Host {
    task: Value,
    /// The acts of the task that this host has not done yet.
    left: VecDeque<Value>,
    printed: HashSet<String>,
    /// The uuids of prompts that have no result yet.
    unanswered: Vec<Value>,
    idle: bool,
    /// The agent's standard input; None after this host closed it.
    agent: Option<ChildStdin>,
}

impl Host {
    /// Writes a message, and ignores errors: `main` notices that the agent has exited when the agent's output ends.
    fn write(&mut self, message: &Value) {
        let _ = self.agent.as_mut().map(|agent| writeln!(agent, "{message}"));
    }

    fn request(&mut self, subtype: &str, mut body: Value) {
        body["subtype"] = subtype.into();
        self.write(&json!({"type": "control_request", "request_id": subtype, "request": body}));
    }

    fn show(&mut self, kind: &str, line: &Value) {
        let mut line = line.clone();
        line["type"] = kind.into();
        println!("{line}");
        self.printed.insert(kind.into());
    }

    fn show_unknown(&mut self, name: &str) {
        if !KNOWN.contains(&format!(" {name} ")) {
            self.show("unknown", &json!({"name": name}));
        }
    }

    /// Does the acts whose condition (`until`) is met by the lines printed so far. Returns true when everything is done.
    fn go_on(&mut self) -> bool {
        while let Some(act) = self.left.front().cloned() {
            if act["until"].as_str().is_some_and(|kind| !self.printed.contains(kind)) {
                return false;
            }
            if act["send"].is_string() {
                let uuid = json!(format!("00000000-0000-4000-8000-{:012}", self.left.len()));
                self.write(&json!({"type": "user", "message": {"role": "user", "content": act["send"]}, "uuid": uuid}));
                self.unanswered.push(uuid);
            }
            if act["interrupt"] == true {
                self.request("interrupt", json!({}));
            }
            self.left.pop_front();
        }
        self.idle && self.unanswered.is_empty()
    }

    fn take(&mut self, message: &Value) {
        let (kind, event) = (message["type"].as_str().unwrap_or_default(), &message["event"]);
        match (kind, message["subtype"].as_str()) {
            ("control_request", _) => self.answer(message),
            ("control_response" | "command_lifecycle", _) => {}
            ("assistant" | "user", _) => match &message["message"]["content"] {
                Value::Array(blocks) => blocks.iter().for_each(|block| self.take_block(kind, block)),
                text => self.show("user", &json!({"text": text})),
            },
            ("stream_event", _) => match event["delta"]["type"].as_str().or(event["type"].as_str()) {
                Some("text_delta") => self.show("delta", &event["delta"]),
                name => self.show_unknown(name.unwrap_or_default()),
            },
            ("result", _) => {
                let answered = message["user_message_uuids"].as_array();
                self.unanswered.retain(|uuid| !answered.is_some_and(|uuids| uuids.contains(uuid)));
                self.show("result", message);
            }
            ("rate_limit_event", _) => self.show("rate_limit", &message["rate_limit_info"]),
            ("system", Some("init")) => self.show("init", message),
            ("system", Some("session_state_changed")) => self.idle = message["state"] == "idle",
            (_, Some(subtype)) => self.show_unknown(&format!("{kind}/{subtype}")),
            (_, None) => self.show_unknown(kind),
        }
    }

    fn take_block(&mut self, kind: &str, block: &Value) {
        match block["type"].as_str().unwrap_or_default() {
            "text" if kind == "user" => self.show("user", block),
            known @ ("text" | "thinking" | "tool_use" | "tool_result") => self.show(known, block),
            unknown => self.show_unknown(unknown),
        }
    }

    fn answer(&mut self, message: &Value) {
        let request = &message["request"];
        let payload = match request["subtype"].as_str() {
            Some("can_use_tool") => {
                self.show("permission", request);
                self.task["permission"].clone()
            }
            Some("hook_callback") => {
                self.show("hook", &request["input"]);
                self.task["hooks"][request["callback_id"].as_str().unwrap_or_default()].clone()
            }
            _ => Value::Null,
        };
        let mut answer = json!({"subtype": "success", "request_id": message["request_id"], "response": payload});
        if payload.is_null() {
            answer = json!({"subtype": "error", "request_id": message["request_id"], "error": "unknown request"});
        }
        self.write(&json!({"type": "control_response", "response": answer}));
    }
}

/// Parses a line as a JSON object. A Rust string cannot contain half of a surrogate pair, so U+FFFD replaces it.
fn parse(line: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(line);
    from_str(&text).or_else(|_| from_str(&without_halves(&text))).ok().filter(Value::is_object)
}

fn without_halves(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        let size = if escape.starts_with("\\u") { 6 } else { 2 };
        let is_half = size == 6 && escape.get(2..4).is_some_and(|hex| ("d8"..="df").contains(&&*hex.to_lowercase()));
        out = out + before + if is_half { "\\ufffd" } else { escape.get(..size).unwrap_or(escape) };
        rest = escape.get(size..).unwrap_or_default();
    }
    out + rest
}

fn main() -> Result<()> {
    let task: Value = from_str(&env::var("CLAUDE_WIRE_CONFORM_TASK").unwrap_or_default())?;
    let mut command = Command::new(env::var_os("CLAUDE_WIRE_CONFORM_CLI").unwrap_or("claude".into()));
    command.args(FLAGS.split(' ')).args(task["flags"].as_array().into_iter().flatten().filter_map(Value::as_str));
    command.env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1").stderr(Stdio::null());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let left = task["acts"].as_array().cloned().unwrap_or_default().into();
    let mut host =
        Host { task, left, printed: HashSet::new(), unanswered: vec![], idle: false, agent: child.stdin.take() };
    let events = host.task["hooks"].as_object().into_iter().flat_map(|hooks| hooks.keys());
    let hooks: Value = events.map(|event| (event.clone(), json!([{"hookCallbackIds": [event]}]))).collect();
    host.request("initialize", json!({"hooks": hooks}));
    let (pid, mut output, mut line) = (child.id(), BufReader::new(child.stdout.take().unwrap()), vec![]);
    while output.read_until(b'\n', &mut line)? > 0 {
        if let Some(message) = parse(&line) {
            host.take(&message);
        }
        line.clear();
        if host.go_on() && host.agent.take().is_some() {
            // Kill the agent if it does not exit within 5 seconds after its input was closed.
            thread::spawn(move || {
                thread::sleep(Duration::from_secs(5));
                Command::new("kill").arg(pid.to_string()).status()
            });
        }
    }
    child.wait()?;
    if !host.unanswered.is_empty() {
        host.show("error", &json!({"message": "the agent ended in the middle of a turn"}));
    }
    Ok(())
}
