use proptest::prelude::*;

use super::*;
use crate::columns::batch::Cell;
use crate::columns::source::Input;
use crate::columns::spec::tests::TABLES;

/// The rows that were read, as text, and the report's counts.
type Found = (Vec<Vec<String>>, Vec<u64>);

fn plan(table: usize, level: Level, max_line: usize) -> Arc<Plan> {
    Arc::new(Plan {
        spec: Spec::new(TABLES[table]).unwrap(),
        only: None,
        strict: false,
        max_line,
        level,
        decode: Box::new(|_| Reply::Refused),
    })
}

fn read(plan: Arc<Plan>, sources: Vec<Source>) -> Found {
    let report = Arc::new(Mutex::new(Report::new(plan.spec.columns.len()).unwrap()));
    let mut reader = Reader::new(plan, Arc::new(sources), Arc::clone(&report)).unwrap();
    let mut rows = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        assert!(batch.rows > 0);
        for row in 0..batch.rows {
            let cells = batch.columns.iter().map(|column| {
                assert_eq!(column.rows(), batch.rows);
                match column.cell(row) {
                    Cell::Text(text) => std::str::from_utf8(text).unwrap().to_owned(),
                    other => format!("{other:?}"),
                }
            });
            rows.push(cells.collect());
        }
    }
    assert!(reader.next_batch().unwrap().is_none());
    let report = lock(&report);
    assert_eq!(report.rows, rows.len() as u64);
    let counts = [report.lines, report.invalid, report.decoded];
    let by_column = report.surrogates.iter().chain(&report.misfits);
    (rows, counts.into_iter().chain(by_column.copied()).collect())
}

fn bytes(data: &[u8], start: u64, stop: u64) -> Source {
    Source {
        input: Input::Bytes(Arc::new(data.to_vec())),
        name: None,
        start,
        stop,
    }
}

#[test]
fn the_first_failure_ends_it() {
    let mut strict = plan(0, Level::Fast, 100);
    Arc::get_mut(&mut strict).unwrap().strict = true;
    let report = Arc::new(Mutex::new(Report::new(strict.spec.columns.len()).unwrap()));
    let sources = Arc::new(vec![bytes(b"{}\nno\n{}\n", 0, 99)]);
    let mut reader = Reader::new(strict, sources, report).unwrap();
    assert!(matches!(
        reader.next_batch(),
        Err(Failure::Strict(Case {
            problem: Problem::Invalid,
            offset: 3,
            ..
        }))
    ));
}

#[test]
fn the_reply_of_the_decoder_is_used() {
    let replies = [
        (Reply::Line(b"{\"type\":\"told\"}".to_vec()), "told"),
        (Reply::Line(b"{".to_vec()), ""),
        (Reply::Refused, ""),
    ];
    for (reply, expected) in replies {
        let mut asked = plan(0, Level::Fast, 100);
        let reply = Mutex::new(Some(reply));
        Arc::get_mut(&mut asked).unwrap().decode = Box::new(move |line| {
            assert_eq!(line, b"{]");
            reply.lock().unwrap().take().unwrap_or(Reply::Failed)
        });
        let (rows, counts) = read(asked, vec![bytes(b"{]\r\n", 0, 99)]);
        let types: Vec<_> = rows.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(types.concat(), expected);
        assert_eq!(counts[..3], [1, u64::from(expected.is_empty()), 1]);
    }
    let mut failed = plan(0, Level::Fast, 100);
    Arc::get_mut(&mut failed).unwrap().decode = Box::new(|_| Reply::Failed);
    let report = Arc::new(Mutex::new(Report::new(0).unwrap()));
    let mut reader = Reader::new(failed, Arc::new(vec![bytes(b"no", 0, 9)]), report).unwrap();
    assert!(matches!(reader.next_batch(), Err(Failure::Decoder)));
}

#[test]
fn lines_are_numbered_from_the_start_of_their_source() {
    let source = bytes(b"{}\n\nx\n", 2, 9);
    let numbers = [0, 3, 4, 99].map(|offset| source.line_number(offset, (0, 1)).unwrap());
    assert_eq!(numbers, [1, 2, 3, 4]);
}

fn line() -> impl Strategy<Value = Vec<u8>> {
    let lines = [
        r#"{"type":"user","message":{"content":"a\ud83d"},"uuid":1}"#,
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"b"},{"type":"tool_use","input":{"a":1}}],"usage":{"input_tokens":1}}}"#,
        r#"{"type":"result","total_cost_usd":0.5,"modelUsage":{}}"#,
        r#"{"type":"torn"#,
        "",
        " \r",
        "{}\r",
        "no",
        r#"{"type":"a","type":"b"}"#,
    ];
    prop_oneof![
        8 => proptest::sample::select(lines.to_vec()).prop_map(|line| line.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
        1 => (0..100_000_usize).prop_map(|length| format!("{{\"type\":\"{}\"}}", "x".repeat(length)).into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn engines_and_ranges_give_the_same(
        lines in proptest::collection::vec(line(), 0..30),
        cut in any::<proptest::sample::Index>(),
        max_line in prop_oneof![Just(100_usize), Just(1 << 20)],
    ) {
        let data = lines.join(&b'\n');
        let cut = cut.index(data.len() + 1) as u64;
        for table in 0..TABLES.len() {
            let whole = read(plan(table, Level::Fast, max_line), vec![bytes(&data, 0, u64::MAX)]);
            prop_assert_eq!(&read(plan(table, Level::Plain, max_line), vec![bytes(&data, 0, u64::MAX)]), &whole);
            let parts = vec![bytes(&data, 0, cut), bytes(&data, cut, data.len() as u64)];
            prop_assert_eq!(&read(plan(table, Level::Fast, max_line), parts), &whole);
        }
    }

    #[test]
    fn rows_have_the_values_that_serde_reads(data in crate::samples::lines(20)) {
        let (rows, _) = read(plan(0, Level::Fast, 1 << 20), vec![bytes(&data, 0, u64::MAX)]);
        let mut offset = 0;
        for line in data.split(|&byte| byte == b'\n') {
            let value = serde_json::from_slice::<serde_json::Value>(line);
            let row = rows.iter().find(|row| row[0] == format!("Word({offset})"));
            // A line with a duplicate key has no row here, because the reader passes it to the decoder, and this test has no decoder.
            if let (Ok(serde_json::Value::Object(value)), Some(row)) = (value, row) {
                for (column, key) in [(2, "type"), (3, "subtype"), (4, "uuid"), (5, "session_id")] {
                    let expected = value.get(key).and_then(|value| value.as_str()).unwrap_or("Null");
                    prop_assert_eq!(&row[column], expected);
                }
            }
            offset += line.len() as u64 + 1;
        }
    }
}

#[test]
fn the_buffer_of_a_short_range_is_small_and_grows_for_a_long_line() {
    let line = format!("{{\"uuid\":\"{}\"}}\n", "x".repeat(3 * SMALL_BUFFER_BYTES));
    let data = [line.as_bytes(), b"{\"uuid\":\"y\"}\n"].concat();
    let sizes = [(0, 1), (5, 6), (line.len() as u64, u64::MAX)].map(|(start, stop)| {
        let plan = plan(0, Level::Fast, 1 << 20);
        let report = Arc::new(Mutex::new(Report::new(plan.spec.columns.len()).unwrap()));
        let sources = Arc::new(vec![bytes(&data, start, stop)]);
        let mut reader = Reader::new(plan, sources, report).unwrap();
        let rows = reader.next_batch().unwrap().map_or(0, |batch| batch.rows);
        (rows, reader.buffer.len())
    });
    // The second range has no line, but the end of a line that the reader passes over.
    let expected = [
        (1, 4 * SMALL_BUFFER_BYTES),
        (0, SMALL_BUFFER_BYTES),
        (1, BUFFER_BYTES),
    ];
    assert_eq!(sizes, expected);
}
