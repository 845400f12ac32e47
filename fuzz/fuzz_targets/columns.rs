//! Fuzzes the columns: the rows must be the same with and without vectors, and read in one range or two, and must have the values that
//! serde reads.
#![no_main]

use std::sync::{Arc, Mutex};

use claude_wire::columns::batch::Cell;
use claude_wire::columns::reader::{Plan, Reader, Reply, Report};
use claude_wire::columns::source::{Input, Source};
use claude_wire::columns::spec::Spec;
use claude_wire::simd::Level;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// Tables that together use all rules and types. Their first column is `offset`.
const TABLES: [&str; 3] = [
    "offset int offset\npath text path\ntype text first type\nsubtype text first subtype\nuuid text first uuid\n\
     cwd text first cwd\nsource text if transcript sessionId stream session_id\n\
     text text joined message.content content\nid text first message.id\nat time first timestamp\nside bool first isSidechain\n\
     cost float first total_cost_usd totalCostUSD\nmodels json first modelUsage",
    "!where assistant user\n!each message.content\noffset int offset\nuuid text first uuid\nblock int index\n\
     kind text kind *.type\ntext text joined *.text *.thinking *.content\ntool text first *.id *.tool_use_id\n\
     input json first *.input\nis_error bool first *.is_error",
    "!where assistant\n!need assistant message.usage\noffset int offset\nid text first message.id\n\
     input int first message.usage.input_tokens\nfive int first message.usage.cache_creation.ephemeral_5m_input_tokens",
];

fuzz_target!(|input: &[u8]| {
    // The first byte selects the table, and the second the place where the second range begins.
    let [table, cut, data @ ..] = input else {
        return;
    };
    let table = TABLES[usize::from(*table) % TABLES.len()];
    let end = data.len() as u64;
    let cut = end * u64::from(*cut) / 256;
    let whole = rows(table, Level::Fast, data, &[(0, u64::MAX)]);
    assert_eq!(whole, rows(table, Level::Plain, data, &[(0, u64::MAX)]));
    assert_eq!(
        whole,
        rows(table, Level::Fast, data, &[(0, cut), (cut, end)])
    );
    if table == TABLES[0] && !data.starts_with(b"\xef\xbb\xbf") {
        check(data, &whole);
    }
});

/// Reads some ranges of the data, and returns the cells of all rows as text.
fn rows(table: &str, level: Level, data: &[u8], ranges: &[(u64, u64)]) -> Vec<Vec<String>> {
    let plan = Arc::new(Plan {
        spec: Spec::new(table).expect("it describes a table"),
        only: None,
        strict: false,
        max_line: 1 << 16,
        level,
        decode: Box::new(|_| Reply::Refused),
    });
    let report = Arc::new(Mutex::new(
        Report::new(plan.spec.columns.len()).expect("there is memory"),
    ));
    let sources = ranges.iter().map(|&(start, stop)| Source {
        input: Input::Bytes(Arc::new(data.to_vec())),
        name: None,
        start,
        stop,
    });
    let mut reader =
        Reader::new(plan, Arc::new(sources.collect()), report).expect("there is memory");
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

/// Compares some columns with the values that serde reads, for each line that has a row and that serde accepts.
fn check(data: &[u8], rows: &[Vec<String>]) {
    let mut offset = 0;
    let mut rest = rows.iter().peekable();
    for line in data.split(|&byte| byte == b'\n') {
        let place = format!("Word({offset})");
        offset += line.len() as u64 + 1;
        let Some(row) = rest.next_if(|row| row[0] == place) else {
            continue;
        };
        let Ok(Value::Object(object)) = serde_json::from_slice(line) else {
            continue;
        };
        for (column, key) in [(2, "type"), (3, "subtype"), (4, "uuid"), (5, "cwd")] {
            let text = object.get(key).and_then(Value::as_str);
            assert_eq!(row[column], text.unwrap_or("Null"), "{key}");
        }
        if let Some(Value::String(text)) = object.get("message").and_then(|it| it.get("content")) {
            assert_eq!(&row[7], text);
        }
    }
    assert!(rest.next().is_none());
}
