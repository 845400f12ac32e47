//! Fuzzes the typed reader: its messages must be those of a model that uses serde, whatever it read before, and wherever the block is cut.
#![no_main]

use claude_wire::{simd, typed};
use libfuzzer_sys::fuzz_target;
use oracle; // `plain` finds it at the root of the crate, like `simd` and `typed`.

#[path = "../../rust/src/typed/plain.rs"]
#[allow(dead_code)] // The unit tests use the rest of the module.
mod plain;

use plain::{reader, require_model, Plain, Values};
use typed::{Line, Reader};

fuzz_target!(|input: &[u8]| {
    let [how, data @ ..] = input else {
        return;
    };
    let data = &[data, b"\n"].concat();
    check(reader, require_model, *how, data);
    check(|| Reader::new(Values::default()), require_dict, *how, data);
});

/// Asserts that a reader without classes may make this dict from this line.
fn require_dict(line: &[u8], message: &Plain) {
    let json: serde_json::Value = serde_json::from_slice(line).expect("it is JSON");
    assert_eq!(message.json(), json);
}

/// Reads a block with readers that `new` makes. `require` compares a line's message with the model. `how` says how often the block is read
/// again, and where it is cut.
fn check(new: fn() -> Reader<Values>, require: fn(&[u8], &Plain), how: u8, data: &[u8]) {
    let mut reader = new();
    let expected = read(&mut reader, data);
    for (line, found) in data.split_inclusive(|&byte| byte == b'\n').zip(&expected) {
        if let Line::Message(message, _) = found {
            require(line, message);
        }
    }
    for _ in 0..how % 5 {
        assert_eq!(read(&mut reader, data), expected);
    }
    let cut = data.len() * usize::from(how) / 256;
    let cut = data[..cut].iter().rposition(|&byte| byte == b'\n');
    let (one, other) = data.split_at(cut.map_or(0, |at| at + 1));
    let mut found = read(&mut reader, one);
    found.extend(read(&mut reader, other));
    assert_eq!(found, expected);
    let alone = data
        .split(|&byte| byte == b'\n')
        .map(|line| reader.one(line));
    assert!(alone
        .zip(&expected)
        .all(|(found, expected)| found == *expected));
}

fn read(reader: &mut Reader<Values>, block: &[u8]) -> Vec<Line<Plain>> {
    let mut lines = Vec::new();
    let mut end = 0;
    reader.block(block, block.len(), |line, from, to| {
        assert_eq!(from, end);
        end = to;
        lines.push(line);
    });
    assert_eq!(end, block.len());
    lines
}
