use super::*;
use crate::ffi::arrow::ArrowArray;
use crate::ffi::CW_ERROR_STALE;

unsafe extern "C" fn refuse(_: *const u8, _: u64, _: *mut c_void) -> i32 {
    0
}

fn new(spec: &str, decode: CwDecode) -> Result<u64, i32> {
    let mut handle = 0;
    let (text, len) = (spec.as_ptr(), spec.len() as u64);
    // SAFETY: `text` points to `len` bytes, the list of names is null with length 0, and `handle` is writable.
    let status = unsafe { cw_scan_new(text, len, ptr::null(), 0, 0, 99, decode, &raw mut handle) };
    match status {
        CW_NOTHING => Ok(handle),
        error => Err(error),
    }
}

const SPEC: &str = "text text first text\nuuid text first uuid";
const DATA: &[u8] = b"{\"uuid\":5}\nno\n";

#[test]
fn wrong_arguments_are_refused() {
    assert_eq!(new("text first", Some(refuse)), Err(CW_ERROR_ARGUMENT));
    assert_eq!(new(SPEC, None), Err(CW_ERROR_ARGUMENT));
    let handle = new(SPEC, Some(refuse)).unwrap();
    let (data, len) = (DATA.as_ptr(), DATA.len() as u64);
    // SAFETY: each pointer is null, or points to live memory of the given length.
    unsafe {
        assert_eq!(cw_scan_add(handle, data, len, 0, 0, len), CW_NOTHING);
        let mut stream = ptr::null_mut();
        assert_eq!(cw_scan_stream(handle, ptr::null_mut()), CW_ERROR_ARGUMENT);
        assert_eq!(cw_scan_stream(handle, &raw mut stream), CW_NOTHING);
        assert_eq!(cw_scan_add(handle, data, len, 0, 0, len), CW_ERROR_ARGUMENT);
        let (mut combine, mut error) = (0, [0; 20]);
        let (out, room) = (error.as_mut_ptr(), error.len() as u64);
        assert_eq!(cw_combine_new(&raw mut combine), CW_NOTHING);
        assert_eq!(
            cw_combine_stream(combine, &mut stream.cast()),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(
            cw_combine_add(combine, ptr::null_mut(), out, room),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(cw_combine_add(combine, stream, out, room), CW_ERROR_SYSTEM);
        assert_eq!(&error, b"it lacks the column ");
        // `cw_combine_add` released the stream although it failed. Its struct must still be freed.
        assert_eq!(cw_stream_free(stream), CW_NOTHING);
        assert_eq!(cw_combine_free(combine), CW_NOTHING);

        assert_eq!(cw_scan_stream(handle, &raw mut stream), CW_NOTHING);
        assert_eq!(cw_scan_free(handle), CW_NOTHING);
        assert_eq!(cw_scan_stream(handle, &raw mut stream), CW_ERROR_STALE);
        assert_eq!(cw_stream_free(stream), CW_NOTHING);
        assert_eq!(cw_stream_free(ptr::null_mut()), CW_NOTHING);
    }
}

#[test]
fn counts_and_cases_are_reported() {
    let handle = new(SPEC, Some(refuse)).unwrap();
    // SAFETY: each pointer is null, or points to live memory of the given length.
    unsafe {
        cw_scan_add(handle, DATA.as_ptr(), DATA.len() as u64, 0, 0, u64::MAX);
        let mut stream = ptr::null_mut();
        cw_scan_stream(handle, &raw mut stream);
        let arrow = stream.cast::<ArrowArrayStream>();
        let mut array = ArrowArray::empty();
        assert_eq!((*arrow).get_next.unwrap()(arrow, &raw mut array), 0);
        let mut list = [9; 20];
        assert_eq!(cw_scan_report(handle, list.as_mut_ptr(), 20), 20);
        let cases = [1, 1, 0, 0, 1, 2, u64::MAX, 0, 11, 2];
        assert_eq!(list[..10], [14, 2, 0, 1, 1, 1, 0, 0, 0, 1]);
        assert_eq!(list[10..], cases);
        assert_eq!(
            cw_scan_report(handle, list.as_mut_ptr(), 19),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(
            cw_scan_report(handle, ptr::null_mut(), 20),
            CW_ERROR_ARGUMENT
        );
        cw_stream_free(stream);
        cw_scan_free(handle);
    }
}

#[test]
fn usage_needs_its_columns_and_rows_of_the_right_size() {
    let handle = new(SPEC, Some(refuse)).unwrap();
    let (mut out, mut sums, mut count, mut groups) = ([0; 14], 0, 9, [0; WORDS]);
    let (rows, steps) = ([0; ROW_BYTES], [1, 2]);
    let size = ROW_BYTES as u64;
    let (rows, steps, room) = (rows.as_ptr(), steps.as_ptr(), groups.as_mut_ptr());
    // SAFETY: each pointer is null, or points to live memory of the given length.
    unsafe {
        assert_eq!(cw_scan_usage(handle, ptr::null_mut()), CW_ERROR_ARGUMENT);
        assert_eq!(cw_scan_usage(handle, out.as_mut_ptr()), CW_ERROR_ARGUMENT);
        assert_eq!(cw_scan_free(handle), CW_NOTHING);
        assert_eq!(cw_scan_usage(handle, out.as_mut_ptr()), CW_ERROR_STALE);
        assert_eq!(cw_sums_new(ptr::null_mut()), CW_ERROR_ARGUMENT);
        assert_eq!(cw_sums_new(&raw mut sums), CW_NOTHING);
        let mut add = |rows, size, steps, room| {
            cw_sums_add(sums, rows, size, 1, steps, 2, room, &raw mut count)
        };
        assert_eq!(add(rows, size - 1, steps, room), CW_ERROR_ARGUMENT);
        assert_eq!(add(ptr::null(), size, steps, room), CW_ERROR_ARGUMENT);
        assert_eq!(add(rows, size, ptr::null(), room), CW_ERROR_ARGUMENT);
        assert_eq!(add(rows, size, steps, ptr::null_mut()), CW_ERROR_ARGUMENT);
        assert_eq!(add(rows, size, steps, room), CW_NOTHING);
        assert_eq!((count, groups[4]), (1, 1));
        let none = cw_sums_add(
            sums,
            ptr::null(),
            0,
            1,
            ptr::null(),
            0,
            ptr::null_mut(),
            &raw mut count,
        );
        assert_eq!((none, count), (CW_NOTHING, 0));
        assert_eq!(cw_sums_free(sums), CW_NOTHING);
        assert_eq!(cw_sums_free(sums), CW_ERROR_STALE);
    }
}
