use super::*;

fn columns() -> Vec<(String, Type)> {
    let names = [
        "message_id",
        "request_id",
        "uuid",
        "source",
        "request_session_id",
        "n",
    ];
    let kinds = [
        Type::Text,
        Type::Text,
        Type::Text,
        Type::Text,
        Type::Text,
        Type::Int,
    ];
    names.map(str::to_owned).into_iter().zip(kinds).collect()
}

/// The last cells of the rows that count. An empty text is none.
fn combined(rows: &[([&str; 5], u64)]) -> Vec<u64> {
    let mut combine = Combine::new(&columns()).unwrap();
    for (texts, number) in rows {
        combine.add(|column| match texts.get(column) {
            None => Cell::Word(*number),
            Some(&"") => Cell::Null,
            Some(text) => Cell::Text(text.as_bytes()),
        });
    }
    let mut found = Vec::new();
    let mut index = 0;
    while let Some(batch) = combine.batch(index) {
        for row in 0..batch.rows {
            let Cell::Word(number) = batch.columns[5].cell(row) else {
                panic!("a number was expected");
            };
            found.push(number);
        }
        index += 1;
    }
    found
}

#[test]
fn the_best_row_of_an_answer_counts() {
    let original = ["m", "r", "", "transcript", ""];
    let copy = ["m", "r", "", "transcript", "s"];
    let stream = ["m", "r", "", "stream", ""];
    assert_eq!(
        combined(&[(original, 1), (original, 2), (copy, 3), (stream, 4)]),
        [2]
    );
    assert_eq!(combined(&[(stream, 4), (copy, 3), (original, 1)]), [1]);
    assert_eq!(combined(&[(copy, 1), (stream, 2), (copy, 3)]), [3]);
}

#[test]
fn keys_do_not_run_into_each_other() {
    let keys = [
        ["ab", "c", "", "", ""],
        ["a", "bc", "", "", ""],
        ["ab", "", "", "", ""],
        ["", "c", "ab", "", ""],
    ];
    let rows: Vec<_> = keys.into_iter().zip(0..).collect();
    assert_eq!(combined(&rows), [0, 1, 2, 3]);
    assert_eq!(
        combined(&[(["", "", "", "", ""], 1), (["", "", "", "", ""], 2)]),
        [1, 2]
    );
}

#[test]
fn rows_of_many_batches_are_superseded() {
    let ids: Vec<_> = (0..3 * BATCH_ROWS)
        .map(|number| number.to_string())
        .collect();
    let rows = ids.iter().map(|id| ([id.as_str(), "", "", "", ""], 1));
    let rows: Vec<_> = rows.collect();
    let again: Vec<_> = rows.iter().map(|(key, _)| (*key, 2)).collect();
    let found = combined(&[rows, again].concat());
    assert_eq!(
        (found.len(), found.iter().sum::<u64>()),
        (ids.len(), 2 * ids.len() as u64)
    );
}

#[test]
fn the_key_must_be_there() {
    assert!(Combine::new(&columns()[..1]).is_none());
    assert!(Combine::new(&[
        ("message_id".into(), Type::Int),
        ("request_id".into(), Type::Text)
    ])
    .is_none());
}
