use std::fmt::Write;
use std::sync::{Arc, Mutex};

use super::*;
use crate::columns::reader::{Plan, Reader, Reply, Report};
use crate::columns::source::{Input, Source};
use crate::simd::Level;

/// The specification that Python makes; tests in Python check that it has all columns.
const SPEC: &str = "!where assistant cost-state\n!need assistant message.usage\ntype text first type\n\
    path text path\noffset int offset\ntimestamp time first timestamp\nmessage_id text first message.id\n\
    request_id text first requestId\nuuid text first uuid\nrequest_session_id text first requestSessionId\n\
    session_id text first sessionId\nmodel text first message.model\ncwd text first cwd\n\
    input_tokens int first message.usage.input_tokens\noutput_tokens int first message.usage.output_tokens\n\
    cache_creation_input_tokens int first message.usage.cache_creation_input_tokens\n\
    cache_creation_5m int first message.usage.cache_creation.ephemeral_5m_input_tokens\n\
    cache_creation_1h int first message.usage.cache_creation.ephemeral_1h_input_tokens\n\
    cache_read_input_tokens int first message.usage.cache_read_input_tokens\n\
    total_cost_usd float first totalCostUSD\nmodel_usage json first modelUsage";

fn read(lines: &str) -> UsageRows {
    let plan = Arc::new(Plan {
        spec: Spec::new(SPEC).unwrap(),
        only: None,
        strict: false,
        max_line: 1 << 20,
        level: Level::Fast,
        decode: Box::new(|_| Reply::Refused),
    });
    let source = Source {
        input: Input::Bytes(Arc::new(lines.as_bytes().to_vec())),
        name: None,
        start: 0,
        stop: u64::MAX,
    };
    let report = Arc::new(Mutex::new(Report::new(plan.spec.columns.len()).unwrap()));
    let mut usage = UsageRows::new(&plan.spec).unwrap();
    let mut reader = Reader::new(plan, Arc::new(vec![source]), report).unwrap();
    while let Some(batch) = reader.next_batch().unwrap() {
        usage.add(&batch).unwrap();
    }
    usage
}

/// Returns a line with the usage of an answer. `more` is added to the line's object.
fn line(id: &str, output: i64, more: &str) -> String {
    format!(
        "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{id}\",\"model\":\"x\",\"usage\":{{\"input_tokens\":2,\
         \"output_tokens\":{output}}}}},\"requestId\":\"r\",\"sessionId\":\"s\"{more}}}\n"
    )
}

/// Returns the words of each row after the key.
fn words(rows: &[u8]) -> Vec<Vec<i64>> {
    let words = |row: &[u8]| {
        row[16..]
            .chunks_exact(8)
            .map(|word| i64::from_le_bytes(word.try_into().unwrap()))
            .collect()
    };
    rows.chunks_exact(ROW_BYTES).map(words).collect()
}

/// A name's digest, as it is in a row.
fn name_digest(name: &str) -> i64 {
    let id = digest(b'n', name.as_bytes(), b"").to_le_bytes();
    i64::from_le_bytes(id[..8].try_into().unwrap())
}

const QUARTERS: Grouping = Grouping {
    period: 900_000_000,
    steps: &[100, 200],
};

#[test]
fn a_row_has_the_numbers_of_its_line() {
    let time = ",\"timestamp\":\"1970-01-01T00:00:01Z\",\"cwd\":\"/a\"";
    let found = read(&line("m", 3, time));
    let expected = [
        name_digest("s"),
        name_digest("x"),
        1_000_000,
        2,
        3,
        0,
        0,
        0,
        0,
    ];
    assert_eq!(words(&found.originals), [expected]);
    assert_eq!(
        found.originals[..16],
        digest(b'm', b"m", b"r").to_le_bytes()
    );
    assert_eq!((found.session, found.cwd), (b"s".to_vec(), b"/a".to_vec()));
    assert!(found.copies.is_empty() && found.cost.is_empty());
    let mut names = Vec::new();
    for each in ["s", "x"] {
        names.extend(name_digest(each).to_le_bytes());
        names.extend(1_u64.to_le_bytes());
        names.extend(each.as_bytes());
    }
    assert_eq!(found.names, names);
}

#[test]
fn digests_stay_the_same_because_they_are_stored() {
    assert_eq!(
        digest(b'm', b"msg_1", b"req_1"),
        109_244_384_372_692_850_475_685_191_979_547_343_831
    );
}

#[test]
fn missing_and_invalid_values_have_defaults() {
    let bare = "{\"type\":\"assistant\",\"message\":{\"usage\":{\"output_tokens\":-3,\"input_tokens\":2199023255552}}}\n";
    let found = read(&format!("{bare}{bare}"));
    let expected = [0, name_digest("?"), NO_TIME, MAX_TOKENS, 0, 0, 0, 0, 0];
    assert_eq!(words(&found.originals), [expected, expected]); // without ids, each line is an answer
    let old = ",\"timestamp\":\"1960-01-01T00:00:00Z\"";
    assert_eq!(words(&read(&line("m", 1, old)).originals)[0][2], NO_TIME);
    let synthetic = line("m", 1, "").replace("\"x\"", "\"<synthetic>\"");
    assert!(read(&synthetic).originals.is_empty());
}

#[test]
fn each_kind_of_id_is_a_key_of_its_own() {
    let mut lines = String::new();
    for id in ["{\"id\":\"a\",", "{\"id\":\"\",", "{"] {
        for uuid in [
            "",
            ",\"uuid\":\"\"",
            ",\"uuid\":\"a\"",
            ",\"requestId\":\"a\"",
        ] {
            let usage = "\"usage\":{}";
            writeln!(
                lines,
                "{{\"type\":\"assistant\",\"message\":{id}{usage}}}{uuid}}}"
            )
            .unwrap();
        }
    }
    let found = read(&lines).originals;
    let keys: HashSet<_> = found
        .chunks_exact(ROW_BYTES)
        .map(|row| &row[..16])
        .collect();
    // With an id, only the request counts: two keys for each id. Without one, the uuid or the place of the line.
    assert_eq!(keys.len(), 2 + 2 + 4);
}

#[test]
fn the_last_cost_with_a_number_is_kept() {
    let state = |total: &str| {
        format!("{{\"type\":\"cost-state\",\"sessionId\":\"c\",\"totalCostUSD\":{total},\"modelUsage\":{{\"x\":{{}}}}}}\n")
    };
    let lines = state("1") + &state("2.5") + &line("m", 1, "") + &state("null") + &state("\"3\"");
    let found = read(&lines);
    assert_eq!(found.cost[..8], 2.5_f64.to_le_bytes());
    assert_eq!(
        (&found.cost[8..], &*found.cost_session),
        (&b"{\"x\":{}}"[..], &b"c"[..])
    );
    assert_eq!(words(&found.originals).len(), 1);
}

#[test]
fn names_are_cut_between_characters() {
    for (character, bytes) in [("x", 1), ("ü", 2), ("😀", 4)] {
        let long = character.repeat(MAX_CHARS + 1);
        assert_eq!(cut(long.as_bytes()).len(), MAX_CHARS * bytes);
        let short = character.repeat(MAX_CHARS);
        assert_eq!(cut(short.as_bytes()), short.as_bytes());
    }
}

#[test]
fn of_the_rows_of_an_answer_the_last_one_counts_and_an_original_before_a_copy() {
    let copy = ",\"requestSessionId\":\"o\"";
    let lines = [
        line("a", 1, ""),
        line("a", 2, ""),
        line("b", 10, copy),
        line("d", 7, ""),
        line("a", 3, ""),
    ]
    .concat();
    let found = read(&(lines + &line("c", 100, copy) + &line("b", 20, "")));
    // Only rows that follow each other are replaced at once.
    assert_eq!(
        words(&found.originals)
            .iter()
            .map(|row| row[4])
            .collect::<Vec<_>>(),
        [2, 7, 3, 20]
    );
    let mut sums = UsageSums::default();
    let originals = sums.add(&found.originals, &QUARTERS).unwrap();
    assert_eq!(
        originals,
        [[
            name_digest("s"),
            name_digest("x"),
            NO_TIME,
            0,
            3,
            6,
            30,
            0,
            0,
            0,
            0
        ]]
    );
    let copies = sums.add(&found.copies, &QUARTERS).unwrap();
    assert_eq!(
        copies,
        [[
            name_digest("o"),
            name_digest("x"),
            NO_TIME,
            0,
            1,
            2,
            100,
            0,
            0,
            0,
            0
        ]]
    );
    assert_eq!(sums.add(&found.originals, &QUARTERS), Ok(vec![]));
}

#[test]
fn sums_are_grouped_by_session_model_period_and_step() {
    let row = |key: u8, group: [i64; 4]| {
        let [session, model, time, input] = group;
        let mut row = vec![key; 16];
        for word in [session, model, time, input, 1, 0, 0, 0, 0] {
            row.extend(word.to_le_bytes());
        }
        row
    };
    let minute = 60_000_000;
    let groups = [
        [1, 1, 0, 100],
        [1, 1, 14 * minute, 1],
        [1, 1, 15 * minute, 1],
        [1, 2, 0, 1],
        [2, 1, 0, 1],
        [1, 1, 0, 101],
        [1, 1, 0, 201],
        [1, 1, -5, 1],
        [1, 1, 1, 1],
    ];
    let rows: Vec<_> = (0..)
        .zip(groups)
        .flat_map(|(key, group)| row(key, group))
        .collect();
    let mut found = UsageSums::default().add(&rows, &QUARTERS).unwrap();
    found.sort_unstable();
    let sum = |session, model, quarter, step, answers, input| {
        [
            session, model, quarter, step, answers, input, answers, 0, 0, 0, 0,
        ]
    };
    let expected = [
        sum(1, 1, NO_TIME, 0, 1, 1),
        sum(1, 1, 0, 0, 3, 102),
        sum(1, 1, 0, 100, 1, 101),
        sum(1, 1, 0, 200, 1, 201),
        sum(1, 1, 1, 0, 1, 1),
        sum(1, 2, 0, 0, 1, 1),
        sum(2, 1, 0, 0, 1, 1),
    ];
    assert_eq!(found, expected);
    // Damaged rows may have any numbers.
    let none = Grouping {
        period: 0,
        steps: &[],
    };
    assert_eq!(
        UsageSums::default()
            .add(&[0xff; 5 * ROW_BYTES], &none)
            .unwrap()
            .len(),
        1
    );
    let damaged = [row(1, [0, 0, 0, i64::MAX]), row(2, [0, 0, 0, i64::MAX])].concat();
    assert_eq!(UsageSums::default().add(&damaged, &none).unwrap()[0][5], -2);
}
