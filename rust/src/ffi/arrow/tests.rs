use std::sync::mpsc;
use std::thread;

use super::*;
use crate::columns::batch::Cell;

fn batch(rows: u64) -> Batch {
    let mut batch = Batch::new(&[Type::Text, Type::Int, Type::Bool]).unwrap();
    for number in 0..rows {
        let text = number.to_string();
        batch.begin_row().unwrap();
        batch.columns[0].push(Cell::Text(text.as_bytes())).unwrap();
        batch.columns[1].push_null();
        batch.columns[2].push(Cell::Bool(true)).unwrap();
        batch.rows += 1;
    }
    batch
}

struct Moved(ArrowArray);
// SAFETY: the C data interface lets any thread release an array.
unsafe impl Send for Moved {}

#[test]
fn an_array_owns_its_values_until_it_is_released_on_any_thread() {
    let mut array = ArrowArray::of(batch(1000)).unwrap();
    assert_eq!((array.length, array.n_children), (1000, 3));
    // SAFETY: the array has three children. This moves the first out as the interface describes: copy, then clear `release`.
    let child = unsafe {
        let place = *array.children;
        let child = place.read();
        (*place).release = None;
        child
    };
    // SAFETY: `ArrowArray::of` made the array, and it is not released yet.
    unsafe { array.release.unwrap()(&raw mut array) };
    assert!(array.release.is_none());
    // SAFETY: the second buffer of a text column has one more offset than rows, so index 1000 exists.
    let end = unsafe { *(*child.buffers.add(1)).cast::<i32>().add(1000) };
    assert_eq!(end, 10 + 90 * 2 + 900 * 3);
    let moved = Moved(child);
    thread::spawn(move || {
        let mut moved = moved;
        let Moved(array) = &mut moved;
        // SAFETY: the child was moved out above, and it is not released yet.
        unsafe { array.release.unwrap()(array) };
        assert!(array.release.is_none());
    })
    .join()
    .unwrap();
}

#[test]
fn a_stream_ends_with_a_released_array_and_a_failure_has_a_text() {
    let mut left = 2;
    let batches: Batches = Box::new(move || {
        left -= 1;
        match left {
            1 => Ok(Some(batch(3))),
            0 => Ok(None),
            -1 => panic!("provoked by a test"),
            _ => Err(StreamError::NoMemory),
        }
    });
    let mut stream = ArrowArrayStream::of(vec![("a".into(), Type::Time)], batches);
    let mut schema = ArrowSchema::empty();
    let mut array = ArrowArray::empty();
    // SAFETY: the stream is from `ArrowArrayStream::of`; each struct is released once and not used after that.
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

struct Shared(*mut ArrowArrayStream);
// SAFETY: the functions of an exported stream are safe to call from several threads, which the tests below check.
unsafe impl Send for Shared {}

fn words(stream: *mut ArrowArrayStream) -> Option<String> {
    // SAFETY: the stream is from `ArrowArrayStream::of` and not released; its error text lives as long as the stream.
    unsafe {
        let words = (*stream).get_last_error.unwrap()(stream);
        (!words.is_null()).then(|| CStr::from_ptr(words).to_str().unwrap().to_owned())
    }
}

#[test]
fn a_second_thread_is_refused_during_a_read() {
    let (begun, wait_begun) = mpsc::channel();
    let (go_on, wait_go_on) = mpsc::channel();
    let mut left = 2;
    let batches: Batches = Box::new(move || {
        begun.send(()).unwrap();
        wait_go_on.recv().unwrap();
        left -= 1;
        Ok((left > 0).then(|| batch(3)))
    });
    let mut stream = ArrowArrayStream::of(vec![("a".into(), Type::Text)], batches);
    let shared = Shared(&raw mut stream);
    let reader = thread::spawn(move || {
        let shared = shared;
        let Shared(stream) = shared;
        let mut array = ArrowArray::empty();
        // SAFETY: the test joins this thread before it drops the stream.
        let status = unsafe { (*stream).get_next.unwrap()(stream, &raw mut array) };
        (status, array.length)
    });
    wait_begun.recv().unwrap();
    let (stream, mut array) = (&raw mut stream, ArrowArray::empty());
    // SAFETY: the stream is a local variable of this function, and is not released before the end.
    unsafe {
        let next = (*stream).get_next.unwrap();
        assert_eq!(next(stream, &raw mut array), EBUSY);
        assert!(array.release.is_none());
        assert!(words(stream).unwrap().starts_with("another thread"));
        let mut schema = ArrowSchema::empty();
        assert_eq!((*stream).get_schema.unwrap()(stream, &raw mut schema), 0);
        go_on.send(()).unwrap();
        assert_eq!(reader.join().unwrap(), (0, 3));
        // EBUSY is not a failure of the stream: the stream still returns batches.
        assert_eq!(words(stream), None);
        go_on.send(()).unwrap();
        assert_eq!(next(stream, &raw mut array), 0);
        assert!(array.release.is_none());
    }
}

#[test]
fn a_stream_that_two_threads_release_is_freed_once() {
    for _ in 0..100 {
        let mut stream = ArrowArrayStream::of(Vec::new(), Box::new(|| Ok(None)));
        let release = stream.release.unwrap();
        let threads = [(); 2].map(|()| {
            let shared = Shared(&raw mut stream);
            thread::spawn(move || {
                let shared = shared;
                // SAFETY: the test joins both threads before it drops the struct.
                unsafe { release(shared.0) };
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(stream.release.is_none());
    }
}
