//! Fuzzes the kinds of lines: with and without vectors, they must be the same as the oracle's.
#![no_main]

use claude_wire::kinds::peek::peek_lines;
use claude_wire::kinds::scan::KindSpans;
use claude_wire::kinds::string::Span;
use claude_wire::simd::Level;
use libfuzzer_sys::fuzz_target;
use oracle::Kind;

fuzz_target!(|input: &[u8]| {
    // The first byte is the maximum number of lines and kinds per call.
    let Some((&most, block)) = input.split_first() else {
        return;
    };
    let most = usize::from(most % 16) + 1;
    let fast = kinds(block, Level::Fast, most);
    assert_eq!(fast, kinds(block, Level::Plain, most));
    assert_eq!(fast, kinds(block, Level::Fast, 256));

    let mut lines: Vec<_> = block.split(|&byte| byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    assert_eq!(fast.len(), lines.len());
    for (line, found) in lines.into_iter().zip(fast) {
        assert_eq!(found, oracle::kind(line).unwrap_or_default());
        // The kind must be the same if no bytes follow the line.
        let alone = kinds(line, Level::Fast, 1);
        assert_eq!(alone, if line.is_empty() { vec![] } else { vec![found] });
    }
});

fn kinds(block: &[u8], level: Level, most: usize) -> Vec<Kind> {
    let mut found = Vec::new();
    let mut rest = block;
    while !rest.is_empty() {
        let mut ids = vec![0; most];
        let mut spans = vec![KindSpans::default(); most];
        let peeked = peek_lines(rest, level, &mut ids, &mut spans);
        assert!(peeked.lines > 0 && peeked.lines <= most && peeked.kinds <= most);
        for &id in &ids[..peeked.lines] {
            assert!(usize::from(id) < peeked.kinds);
            let kind = spans[usize::from(id)];
            found.push([kind.name, kind.subtype, kind.detail].map(|span| text(rest, span)));
        }
        rest = &rest[peeked.bytes..];
    }
    found
}

fn text(block: &[u8], span: Option<Span>) -> Option<String> {
    let span = span?;
    let raw = span.of(block);
    assert_eq!(span.escaped, raw.contains(&b'\\'));
    let text = oracle::decoded(&[b"\"", raw, b"\""].concat());
    Some(String::from_utf8(text.expect("valid escapes")).expect("the tags of a kind are text"))
}
