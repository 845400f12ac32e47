use super::*;
use crate::ffi::CW_ERROR_STALE;

unsafe extern "C" fn refuse(_: *const u8, _: u64, _: *mut c_void) -> i32 {
    0
}

#[test]
fn wrong_arguments_are_refused() {
    let mut handle = 0;
    let (table, columns) = (b"messages", b"text\nuuid");
    let none = ptr::null();
    // SAFETY: the texts are of that length, or null with the length 0.
    let mut new = |table: &[u8], columns: &[u8], decode: CwDecode| unsafe {
        let (table, table_len) = (table.as_ptr(), table.len() as u64);
        let (columns, columns_len) = (columns.as_ptr(), columns.len() as u64);
        cw_scan_new(
            table,
            table_len,
            columns,
            columns_len,
            none,
            0,
            0,
            99,
            decode,
            &raw mut handle,
        )
    };
    assert_eq!(new(b"message", columns, Some(refuse)), CW_ERROR_ARGUMENT);
    assert_eq!(new(table, b"no", Some(refuse)), CW_ERROR_ARGUMENT);
    assert_eq!(new(table, columns, None), CW_ERROR_ARGUMENT);
    assert_eq!(new(table, columns, Some(refuse)), CW_NOTHING);
    // SAFETY: the pointers are to live memory of that length, or null.
    unsafe {
        let data = b"{\"uuid\":5}\nno\n";
        let len = data.len() as u64;
        assert_eq!(
            cw_scan_add(handle, data.as_ptr(), len, 0, 0, len),
            CW_NOTHING
        );
        let mut stream = ptr::null_mut();
        assert_eq!(cw_scan_stream(handle, ptr::null_mut()), CW_ERROR_ARGUMENT);
        assert_eq!(cw_scan_stream(handle, &raw mut stream), CW_NOTHING);
        assert_eq!(
            cw_scan_add(handle, data.as_ptr(), len, 0, 0, len),
            CW_ERROR_ARGUMENT
        );
        let mut combine = 0;
        assert_eq!(cw_combine_new(&raw mut combine), CW_NOTHING);
        assert_eq!(
            cw_combine_stream(combine, &mut stream.cast()),
            CW_ERROR_ARGUMENT
        );
        assert_eq!(cw_combine_add(combine, ptr::null_mut()), CW_ERROR_ARGUMENT);
        assert_eq!(cw_combine_add(combine, stream), CW_ERROR_SYSTEM);
        let mut words = [0; 20];
        assert_eq!(cw_combine_error(combine, words.as_mut_ptr(), 20), 20);
        assert_eq!(&words, b"it lacks the column ");
        // It was released by what took it, and only its memory is left.
        assert_eq!(cw_stream_free(stream), CW_NOTHING);
        assert_eq!(cw_combine_free(combine), CW_NOTHING);

        assert_eq!(cw_scan_stream(handle, &raw mut stream), CW_NOTHING);
        assert_eq!(cw_scan_free(handle), CW_NOTHING);
        assert_eq!(cw_scan_stream(handle, &raw mut stream), CW_ERROR_STALE);
        assert_eq!(cw_stream_free(stream), CW_NOTHING);
        assert_eq!(cw_stream_free(ptr::null_mut()), CW_NOTHING);
        let mut names = [0; 10];
        assert_eq!(
            cw_table_columns(table.as_ptr(), 8, names.as_mut_ptr(), 10),
            CW_ERROR_ARGUMENT
        );
    }
}

#[test]
fn counts_and_cases_are_told() {
    let mut handle = 0;
    let (table, columns, data) = (b"messages", b"text\nuuid", b"{\"uuid\":5}\nno\n");
    let none = ptr::null();
    // SAFETY: the pointers are to live memory of that length, or null.
    unsafe {
        let columns = columns.as_ptr();
        let made = cw_scan_new(
            table.as_ptr(),
            8,
            columns,
            9,
            none,
            0,
            0,
            99,
            Some(refuse),
            &raw mut handle,
        );
        assert_eq!(made, CW_NOTHING);
        cw_scan_add(handle, data.as_ptr(), 14, 0, 0, u64::MAX);
        let mut stream = ptr::null_mut();
        cw_scan_stream(handle, &raw mut stream);
        let arrow = stream.cast::<ArrowArrayStream>();
        let mut array = super::super::arrow::ArrowArray::empty();
        assert_eq!((*arrow).get_next.unwrap()(arrow, &raw mut array), 0);
        array.release.unwrap()(&raw mut array);
        let mut stats = mem::MaybeUninit::uninit();
        assert_eq!(cw_scan_stats(handle, stats.as_mut_ptr()), CW_NOTHING);
        let stats = stats.assume_init();
        assert_eq!(
            (stats.lines, stats.rows, stats.invalid, stats.cases),
            (2, 1, 1, 2)
        );
        let mut counts = [9; 4];
        assert_eq!(cw_scan_counts(handle, counts.as_mut_ptr(), 2), CW_NOTHING);
        assert_eq!(counts, [0, 0, 0, 1]);
        assert_eq!(
            cw_scan_counts(handle, counts.as_mut_ptr(), 3),
            CW_ERROR_ARGUMENT
        );
        let mut case = mem::MaybeUninit::uninit();
        assert_eq!(cw_scan_case(handle, 1, case.as_mut_ptr()), CW_NOTHING);
        let case = case.assume_init();
        assert_eq!(
            (case.problem, case.column, case.line_number),
            (CW_PROBLEM_INVALID, u64::MAX, 2)
        );
        assert_eq!(
            cw_scan_case(handle, 2, &mut case.clone()),
            CW_ERROR_ARGUMENT
        );
        cw_stream_free(stream);
        cw_scan_free(handle);
    }
}
