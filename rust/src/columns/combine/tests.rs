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

/// Rows with five strings and a number. An empty string stands for null.
struct Given<'a>(&'a [([&'a str; 5], u64)]);

impl Rows for Given<'_> {
    fn rows(&self) -> usize {
        self.0.len()
    }

    fn cell(&self, column: usize, row: usize) -> Cell<'_> {
        let (texts, number) = &self.0[row];
        match texts.get(column) {
            None => Cell::Word(*number),
            Some(&"") => Cell::Null,
            Some(text) => Cell::Text(text.as_bytes()),
        }
    }
}

/// Returns the numbers of the rows that count, after adding the rows in tables of `size` rows.
fn in_tables(rows: &[([&str; 5], u64)], size: usize) -> Vec<u64> {
    let mut combine = Combine::new(&columns()).unwrap();
    rows.chunks(size)
        .for_each(|rows| combine.add(Given(rows)).unwrap());
    let (mut found, mut next) = (Vec::new(), 0);
    while let Some(batch) = combine.batch(&mut next).unwrap() {
        for row in 0..batch.rows {
            let Cell::Word(number) = batch.columns[5].cell(row) else {
                panic!("a number was expected");
            };
            found.push(number);
        }
    }
    found
}

fn combined(rows: &[([&str; 5], u64)]) -> Vec<u64> {
    let found = in_tables(rows, 1000);
    assert_eq!(in_tables(rows, 1), found);
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
    let ids: Vec<_> = (0..BATCH_ROWS + 9)
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
    assert!(Combine::<Given>::new(&columns()[..1]).is_none());
    assert!(Combine::<Given>::new(&[
        ("message_id".into(), Type::Int),
        ("request_id".into(), Type::Text)
    ])
    .is_none());
}
