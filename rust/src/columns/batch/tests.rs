use super::*;

#[test]
fn rows_are_added_and_taken_back() {
    let types = [Type::Text, Type::Int, Type::Bool];
    let mut batch = Batch::new(&types).unwrap();
    for number in 0..20_u64 {
        batch.begin_row().unwrap();
        let [text, int, bool] = &mut batch.columns[..] else {
            unreachable!()
        };
        if number % 3 == 0 {
            text.push_null();
            int.push(Cell::Null).unwrap();
            // A value of another type becomes null.
            bool.push(Cell::Word(1)).unwrap();
        } else {
            text.push(Cell::Text(&vec![b'x'; usize::try_from(number).unwrap()]))
                .unwrap();
            int.push(Cell::Word(number)).unwrap();
            bool.push(Cell::Bool(number % 2 == 0)).unwrap();
        }
        batch.rows += 1;
    }
    for rows in (0..=20).rev() {
        // `truncate` also drops the text of a row that was not finished.
        if let Some(text) = batch.columns[0].text() {
            text.extend_from_slice(b"begun");
        }
        batch.truncate(rows);
        for column in &batch.columns {
            assert_eq!((column.rows(), column.nulls), (rows, rows.div_ceil(3)));
        }
        for row in 0..rows {
            let number = row as u64;
            let expected = if row % 3 == 0 {
                [Cell::Null; 3]
            } else {
                [
                    Cell::Text(&b"xxxxxxxxxxxxxxxxxxxx"[..row]),
                    Cell::Word(number),
                    Cell::Bool(row % 2 == 0),
                ]
            };
            let cells = [0, 1, 2].map(|column| batch.columns[column].cell(row));
            assert_eq!(cells, expected);
        }
    }
    assert_eq!(batch.columns[0].bytes(), 4);
}

#[test]
fn a_batch_that_is_taken_leaves_an_empty_one() {
    let types = [Type::Json];
    let mut batch = Batch::new(&types).unwrap();
    batch.begin_row().unwrap();
    batch.columns[0].push(Cell::Text(b"{}")).unwrap();
    batch.rows = 1;
    let taken = batch.take(&types).unwrap();
    assert_eq!((taken.rows, taken.bytes()), (1, 10));
    assert_eq!((batch.rows, batch.columns[0].rows()), (0, 0));
}

#[test]
fn within_the_room_of_a_batch_no_column_grows() {
    fn room(batch: &Batch) -> Vec<[usize; 2]> {
        let columns = batch.columns.iter().map(|column| {
            let values = match &column.values {
                Values::Text(starts, _) => starts.capacity(),
                Values::Words(words) => words.capacity(),
                Values::Bools(bits) => bits.bytes.capacity(),
            };
            [values, column.valid.bytes.capacity()]
        });
        columns.collect()
    }
    let types = [Type::Text, Type::Int, Type::Bool];
    let mut batch = Batch::new(&types).unwrap();
    for number in 0..10_000_u64 {
        batch.begin_row().unwrap();
        let begun = room(&batch);
        let [text, int, bool] = &mut batch.columns[..] else {
            unreachable!()
        };
        text.push(Cell::Text(b"x")).unwrap();
        int.push(Cell::Word(number)).unwrap();
        bool.push(Cell::Bool(true)).unwrap();
        batch.rows += 1;
        assert_eq!(room(&batch), begun);
        // After `truncate` and `take`, `room` must still be right.
        match number % 1000 {
            500 => batch.truncate(batch.rows / 2),
            999 => drop(batch.take(&types).unwrap()),
            _ => (),
        }
    }
}
