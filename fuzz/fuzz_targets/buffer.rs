//! Fuzzes the line buffer: a stream in chunks of any sizes must give the same lines as the whole stream, and as a simple splitter.
#![no_main]

use claude_wire::lines::buffer::{Bom, Buffer, BLOCK_BYTES, HEAD_BYTES};
use claude_wire::lines::step::Step;
use libfuzzer_sys::fuzz_target;
use oracle::defects as defects_of;

/// A line: its bytes (the first ones if it is over the limit), its length, its offset, its number, and its defects (`None` if it is over the
/// limit).
type Line = (Vec<u8>, u64, u64, u64, Option<u32>);

fuzz_target!(|input: &[u8]| {
    // The first bytes are the limit of a line, whether to keep a byte order mark, and two sizes of chunks that alternate.
    let [limit, keep, one, other, data @ ..] = input else {
        return;
    };
    let max_line = usize::from(*limit) + 1;
    let bom = if keep % 2 == 0 { Bom::Skip } else { Bom::Keep };
    let mut sizes = [usize::from(*one), usize::from(*other)].into_iter().cycle();

    let mut chunks = Vec::new();
    let mut rest = data;
    while one | other != 0 && !rest.is_empty() {
        let (chunk, remaining) = rest.split_at(sizes.next().unwrap().min(rest.len()));
        chunks.push(chunk);
        rest = remaining;
    }
    chunks.push(rest);
    let expected = lines(data, max_line, bom);
    assert_eq!(fed(&chunks, max_line, bom), expected);
    assert_eq!(fed(&[data], max_line, bom), expected);
});

/// Splits the data into lines: the model of the buffer.
fn lines(data: &[u8], max_line: usize, bom: Bom) -> Vec<Line> {
    let mut found = Vec::new();
    let mut offset = 0;
    if bom == Bom::Skip && data.starts_with(b"\xef\xbb\xbf") {
        offset = 3;
    }
    let mut line_number = 1;
    while offset < data.len() {
        let rest = &data[offset..];
        let length = rest.iter().position(|&byte| byte == b'\n');
        let line = &rest[..length.unwrap_or(rest.len())];
        let (kept, defects) = if line.len() > max_line {
            (&line[..line.len().min(HEAD_BYTES)], None)
        } else {
            (line, Some(defects_of(line)))
        };
        found.push((
            kept.to_vec(),
            line.len() as u64,
            offset as u64,
            line_number,
            defects,
        ));
        offset += line.len() + 1;
        line_number += 1;
    }
    found
}

/// Feeds the chunks to a buffer, and returns its lines.
fn fed(chunks: &[&[u8]], max_line: usize, bom: Bom) -> Vec<Line> {
    let mut buffer = Buffer::new(max_line, bom);
    let mut found = Vec::new();
    let mut fed = 0;
    for chunk in chunks {
        let mut at = 0;
        while at < chunk.len() {
            let (consumed, step) = buffer.next(&chunk[at..]).unwrap();
            assert!(consumed > 0);
            took(
                &chunk[at..],
                step,
                fed,
                fed + consumed as u64 - 1,
                &mut found,
            );
            at += consumed;
            fed += consumed as u64;
        }
    }
    let step = buffer.close().unwrap();
    took(&[], step, fed, fed, &mut found);
    found
}

/// Appends the lines of a step to `found`. The step begins at byte `start` of the stream; its single line, if it has one, ends at `end`.
fn took(data: &[u8], step: Step, start: u64, end: u64, found: &mut Vec<Line>) {
    let line_number = 1 + found.len() as u64;
    match step {
        Step::Nothing { passed } => assert_eq!(passed, 0),
        Step::Carry { line, defects } => {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let length = line.len() as u64;
            found.push((
                line.to_vec(),
                length,
                end - length,
                line_number,
                Some(defects),
            ));
        }
        Step::TooLong { head, length } => {
            found.push((head.to_vec(), length, end - length, line_number, None));
        }
        Step::Filtered { .. } => unreachable!("without a filter"),
        Step::Body {
            end,
            lines,
            defects,
        } => {
            assert!(lines == 1 || end <= BLOCK_BYTES);
            let mut offset = start;
            let mut all = 0;
            let before = found.len();
            for line in data[..end].split_inclusive(|&byte| byte == b'\n') {
                let line = line
                    .strip_suffix(b"\n")
                    .expect("a block ends with a line feed");
                all |= defects_of(line);
                found.push((
                    line.to_vec(),
                    line.len() as u64,
                    offset,
                    1 + found.len() as u64,
                    Some(defects_of(line)),
                ));
                offset += line.len() as u64 + 1;
            }
            assert_eq!((found.len() - before, defects), (lines, all));
        }
    }
}
