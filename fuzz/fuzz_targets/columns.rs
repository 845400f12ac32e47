//! Columns of lines: with vectors, without, in two ranges, and against what serde reads.
#![no_main]

use std::sync::{Arc, Mutex};

use claude_wire::columns::combine::Cell;
use claude_wire::columns::reader::{Plan, Reader, Reply};
use claude_wire::columns::report::Report;
use claude_wire::columns::source::{Input, Source};
use claude_wire::columns::tables::Table;
use claude_wire::simd::Level;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    // The first byte chooses the table, and the second where the ranges are cut.
    let [table, cut, data @ ..] = input else {
        return;
    };
    let tables = [
        Table::Messages,
        Table::Blocks,
        Table::Usage,
        Table::Results,
    ];
    let table = tables[usize::from(table % 4)];
    let end = data.len() as u64;
    let cut = end * u64::from(*cut) / 256;
    let whole = rows(table, Level::Fast, data, &[(0, u64::MAX)]);
    assert_eq!(whole, rows(table, Level::Plain, data, &[(0, u64::MAX)]));
    assert_eq!(whole, rows(table, Level::Fast, data, &[(0, cut), (cut, end)]));
    if table == Table::Messages && !data.starts_with(b"\xef\xbb\xbf") {
        check(data, &whole);
    }
});

/// The cells of all rows: texts as they are, all else in words.
fn rows(table: Table, level: Level, data: &[u8], ranges: &[(u64, u64)]) -> Vec<Vec<String>> {
    let plan = Arc::new(Plan {
        table,
        specs: table.specs().to_vec(),
        only: None,
        strict: false,
        max_line: 1 << 16,
        level,
        decode: Box::new(|_| Reply::Refused),
    });
    let report = Arc::new(Mutex::new(Report::new(plan.specs.len())));
    let sources = ranges.iter().map(|&(start, stop)| Source {
        input: Input::Bytes(data.to_vec()),
        name: None,
        start,
        stop,
    });
    let mut reader = Reader::new(plan, Arc::new(sources.collect()), report);
    let mut rows = Vec::new();
    while let Some(batch) = reader.next_batch().expect("bytes are read") {
        for row in 0..batch.rows {
            let cells = batch.columns.iter().map(|column| match column.cell(row) {
                Cell::Text(text) => String::from_utf8(text.to_vec()).expect("text is UTF-8"),
                other => format!("{other:?}"),
            });
            rows.push(cells.collect());
        }
    }
    rows
}

/// Of each line that serde takes, and that has a row, the texts of some keys.
fn check(data: &[u8], rows: &[Vec<String>]) {
    let mut offset = 0;
    let mut rest = rows.iter().peekable();
    for line in data.split(|&byte| byte == b'\n') {
        let place = format!("Word({offset})");
        offset += line.len() as u64 + 1;
        let Some(row) = rest.next_if(|row| row[2] == place) else {
            continue;
        };
        let Ok(Value::Object(object)) = serde_json::from_slice(line) else {
            continue;
        };
        for (column, key) in [(3, "type"), (4, "subtype"), (5, "uuid"), (18, "cwd")] {
            let text = object.get(key).and_then(Value::as_str);
            assert_eq!(row[column], text.unwrap_or("Null"), "{key}");
        }
        if let Some(Value::String(text)) = object.get("message").and_then(|it| it.get("content")) {
            assert_eq!(&row[13], text);
        }
    }
    assert!(rest.next().is_none());
}
