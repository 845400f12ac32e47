//! Fuzzes the frame check: its vector version must agree with the plain one and with the oracle. Also checks the starts of lines.
#![no_main]

use claude_wire::lines::frame::{check, check_line, check_plain, line_end, line_starts};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // The first byte is the limit of a line in bytes; 255 means no limit.
    let Some((&limit, data)) = input.split_first() else {
        return;
    };
    let max_line = if limit == 255 {
        usize::MAX
    } else {
        limit.into()
    };
    let found = check(data, max_line);
    assert_eq!(found, check_plain(data, max_line));

    let block = &data[..found.bytes];
    let each = block.split_inclusive(|&byte| byte == b'\n');
    let defects = each.map(|line| oracle::defects(&line[..line.len() - 1]));
    assert_eq!(found.defects, defects.fold(0, |all, line| all | line));

    let (end, is_ascii) = line_end(data);
    let first = data.split(|&byte| byte == b'\n').next().unwrap();
    assert_eq!((end, is_ascii), (first.len(), first.is_ascii()));
    assert_eq!(check_line(first, is_ascii), oracle::defects(first));

    let mut starts = vec![0; found.lines];
    assert!(line_starts(block, &mut starts));
    assert!(!line_starts(block, &mut vec![0; found.lines + 1]));
    for start in starts {
        let start = usize::try_from(start).unwrap();
        assert!(start == 0 || block[start - 1] == b'\n');
    }
});
