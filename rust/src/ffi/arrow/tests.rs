use std::thread;

use super::*;
use crate::columns::batch::Cell;

fn batch(rows: u64) -> Batch {
    let mut batch = Batch::new(&[Type::Text, Type::Int, Type::Bool]);
    for number in 0..rows {
        let text = number.to_string();
        batch.columns[0].push(Cell::Text(text.as_bytes()));
        batch.columns[1].push_null();
        batch.columns[2].push(Cell::Bool(true));
        batch.rows += 1;
    }
    batch
}

struct Moved(ArrowArray);
// SAFETY: the interface lets any thread release an array.
unsafe impl Send for Moved {}

#[test]
fn an_array_owns_its_values_until_it_is_released_on_any_thread() {
    let mut array = ArrowArray::of(batch(1000));
    assert_eq!((array.length, array.n_children), (1000, 3));
    // SAFETY: there are three children; the first is moved out, as a consumer may.
    let child = unsafe {
        let place = *array.children;
        let child = place.read();
        (*place).release = None;
        child
    };
    // SAFETY: the array is not released.
    unsafe { array.release.unwrap()(&raw mut array) };
    assert!(array.release.is_none());
    // SAFETY: a text of 1000 rows has so many offsets.
    let end = unsafe { *(*child.buffers.add(1)).cast::<i32>().add(1000) };
    assert_eq!(end, 10 + 90 * 2 + 900 * 3);
    let moved = Moved(child);
    thread::spawn(move || {
        let mut moved = moved;
        let Moved(array) = &mut moved;
        // SAFETY: the child is not released.
        unsafe { array.release.unwrap()(array) };
        assert!(array.release.is_none());
    })
    .join()
    .unwrap();
}

#[test]
fn a_stream_ends_with_a_released_array_and_a_failure_with_its_words() {
    let mut left = 2;
    let batches: Batches = Box::new(move || {
        left -= 1;
        match left {
            1 => Ok(Some(batch(3))),
            0 => Ok(None),
            -1 => panic!("provoked by a test"),
            _ => Err("not reached".into()),
        }
    });
    let mut stream = ArrowArrayStream::of(vec![("a".into(), Type::Time)], batches);
    let mut schema = ArrowSchema::empty();
    let mut array = ArrowArray::empty();
    // SAFETY: the stream, the schema and the arrays are ours, and released once each.
    unsafe {
        assert_eq!(
            stream.get_schema.unwrap()(&raw mut stream, &raw mut schema),
            0
        );
        let child = *schema.children;
        assert_eq!(CStr::from_ptr((*child).format), c"tsu:UTC");
        assert_eq!(CStr::from_ptr((*child).name), c"a");
        schema.release.unwrap()(&raw mut schema);
        assert!(schema.release.is_none());
        let next = stream.get_next.unwrap();
        assert_eq!(next(&raw mut stream, &raw mut array), 0);
        array.release.unwrap()(&raw mut array);
        assert_eq!(next(&raw mut stream, &raw mut array), 0);
        assert!(array.release.is_none());
        assert!(stream.get_last_error.unwrap()(&raw mut stream).is_null());
        assert_eq!(next(&raw mut stream, &raw mut array), EINVAL);
        let words = CStr::from_ptr(stream.get_last_error.unwrap()(&raw mut stream));
        assert!(words
            .to_str()
            .unwrap()
            .starts_with("a bug in the native library"));
        assert_eq!(next(&raw mut stream, &raw mut array), EINVAL);
        stream.release.unwrap()(&raw mut stream);
        assert!(stream.release.is_none());
    }
}
