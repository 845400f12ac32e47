use proptest::prelude::*;

use super::*;

const NO_LIMIT: usize = usize::MAX;

/// Where a line stands in the stream, as the caller counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    offset: u64,
    line_number: u64,
}

impl Place {
    const START: Self = Self {
        offset: 0,
        line_number: 1,
    };
}

/// A line that came out, as the reference and the buffer both describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    /// With its LF if it had one; of a line over the limit the head.
    bytes: Vec<u8>,
    place: Place,
    /// Of a line over the limit.
    length: Option<u64>,
}

/// What the lines of `stream` are, by the definition.
fn expected(stream: &[u8], max_line: usize, on_bom: Bom) -> Vec<Line> {
    let mut place = Place::START;
    let mut rest = stream;
    if let (Bom::Skip, Some(after)) = (on_bom, stream.strip_prefix(BOM)) {
        rest = after;
        place.offset = 3;
    }
    let mut lines = Vec::new();
    for bytes in rest.split_inclusive(|&byte| byte == b'\n') {
        let bare = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let long = bare.len() > max_line;
        lines.push(Line {
            bytes: if long {
                bare[..bare.len().min(HEAD_BYTES)].to_vec()
            } else {
                bytes.to_vec()
            },
            place,
            length: long.then_some(bare.len() as u64),
        });
        place.offset += bytes.len() as u64;
        place.line_number += 1;
    }
    lines
}

/// Takes a block apart, and checks what the step says of it.
fn lines_of(block: &[u8], lines: usize, mut place: Place, defects: u32, into: &mut Vec<Line>) {
    let pieces: Vec<_> = block.split_inclusive(|&byte| byte == b'\n').collect();
    assert_eq!(pieces.len(), lines);
    assert!(block.len() <= BLOCK_BYTES || lines == 1);
    let each = pieces
        .iter()
        .map(|line| frame::check_line(line.strip_suffix(b"\n").unwrap_or(line), false));
    assert_eq!(defects, each.fold(0, |all, line| all | line));
    for bytes in pieces {
        into.push(Line {
            bytes: bytes.to_vec(),
            place,
            length: None,
        });
        place.offset += bytes.len() as u64;
        place.line_number += 1;
    }
}

/// What a buffer made of a stream, and how much of it was fed.
#[derive(Default)]
struct Taken {
    lines: Vec<Line>,
    fed: u64,
}

impl Taken {
    fn feed(&mut self, buffer: &mut Buffer, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            let (consumed, step) = buffer.next(chunk).unwrap();
            assert!(consumed > 0);
            if let Step::Body {
                end,
                lines,
                defects,
            } = step
            {
                let place = self.place(self.fed);
                lines_of(&chunk[..end], lines, place, defects, &mut self.lines);
            }
            self.fed += consumed as u64;
            self.take_line(step, 1);
            chunk = &chunk[consumed..];
        }
    }

    fn close(&mut self, buffer: &mut Buffer) {
        self.take_line(buffer.close().unwrap(), 0);
    }

    /// Takes a line that ends with what was fed, with so many bytes of LF.
    fn take_line(&mut self, step: Step, lf: u64) {
        match step {
            Step::Carry { line, defects } => {
                let place = self.place(self.fed - line.len() as u64);
                lines_of(line, 1, place, defects, &mut self.lines);
            }
            Step::TooLong { head, length } => self.lines.push(Line {
                bytes: head.to_vec(),
                place: self.place(self.fed - length - lf),
                length: Some(length),
            }),
            Step::Nothing { passed } => assert_eq!(passed, 0),
            Step::Body { .. } => assert_eq!(lf, 1, "there is no chunk"),
            Step::Filtered { .. } => unreachable!("without a filter"),
        }
    }

    fn place(&self, offset: u64) -> Place {
        Place {
            offset,
            line_number: 1 + self.lines.len() as u64,
        }
    }
}

fn split(buffer: &mut Buffer, chunks: &[&[u8]]) -> Vec<Line> {
    let mut taken = Taken::default();
    for chunk in chunks {
        taken.feed(buffer, chunk);
    }
    taken.close(buffer);
    taken.lines
}

/// Whole, byte by byte, at any one and any two cuts; on one buffer, which must be as new after each stream.
fn check_at_every_chunking(stream: &[u8], max_line: usize, on_bom: Bom) {
    let expected = expected(stream, max_line, on_bom);
    let mut buffer = Buffer::new(max_line, on_bom);
    let bytes: Vec<_> = stream.chunks(1).collect();
    assert_eq!(split(&mut buffer, &bytes), expected);
    for two in 0..=stream.len() {
        for one in 0..=two {
            let chunks = [&stream[..one], &stream[one..two], &stream[two..]];
            assert_eq!(
                split(&mut buffer, &chunks),
                expected,
                "{stream:?} cut at {one} and {two}"
            );
        }
    }
}

#[test]
fn every_chunking_gives_the_same_lines() {
    let streams: [&[u8]; 16] = [
        b"",
        b"\n",
        b"{}",
        b"{}\n",
        b"{}\r\n\r\n\n{}",
        b"{\"a\":1}\n[]\n{\"b\":\"\xff\"}\n{",
        b"\xef\xbb\xbf{}\n{}\n",
        b"\xef\xbb\xbf\xef\xbb\xbf{}\n",
        b"\xef\xbb\xbf",
        b"\xef\xbb",
        b"\xef\xbb\n",
        b"\xef\xef\xbb\xbf\n",
        b"\n\xef\xbb\xbf{}\n",
        b"\xef\xbb\xbf\n",
        "{\"\u{2028}\u{85}\"}\n{é}\n".as_bytes(),
        b"12345\n123456\n1234567\r\n12\n",
    ];
    for stream in streams {
        for max_line in [1, 2, 5, 6, 7, NO_LIMIT] {
            check_at_every_chunking(stream, max_line, Bom::Skip);
            check_at_every_chunking(stream, max_line, Bom::Keep);
        }
    }
}

#[test]
fn a_chunk_of_whole_lines_is_one_step_and_is_not_copied() {
    let mut buffer = Buffer::new(NO_LIMIT, Bom::Skip);
    let chunk = b"{}\n".repeat(1000);
    let next = buffer.next(&chunk).unwrap();
    let step = Step::Body {
        end: 3000,
        lines: 1000,
        defects: 0,
    };
    assert_eq!(next, (3000, step));
    assert_eq!(
        buffer.stats(),
        Stats {
            searched: 3000,
            copied: 0,
            held: 0
        }
    );
}

#[test]
fn a_chunk_cut_at_both_ends_is_two_steps() {
    let mut buffer = Buffer::new(NO_LIMIT, Bom::Skip);
    assert_eq!(buffer.next(b"{\"a\"").unwrap(), (4, Step::NOTHING));
    let chunk = b":1}\n{}\n{}\n{\"b";
    let step = Step::Carry {
        line: b"{\"a\":1}\n",
        defects: 0,
    };
    assert_eq!(buffer.next(chunk).unwrap(), (4, step));
    let step = Step::Body {
        end: 6,
        lines: 2,
        defects: 0,
    };
    assert_eq!(buffer.next(&chunk[4..]).unwrap(), (chunk.len() - 4, step));
}

#[test]
fn blocks_are_at_most_64_kib_or_one_line() {
    let long = [b"{".as_slice(), &vec![b'x'; BLOCK_BYTES], b"}\n"].concat();
    let stream = [
        b"{}\n".repeat(50_000),
        long.clone(),
        b"{}\n".to_vec(),
        long.clone(),
        long,
    ]
    .concat();
    assert_eq!(
        split(&mut Buffer::new(NO_LIMIT, Bom::Skip), &[&stream]),
        expected(&stream, NO_LIMIT, Bom::Skip)
    );
}

#[test]
fn the_limit_counts_bytes_without_the_line_feed() {
    for length in [
        1,
        1023,
        1024,
        1025,
        BLOCK_BYTES - 1,
        BLOCK_BYTES,
        BLOCK_BYTES + 1,
    ] {
        let line = vec![b'x'; length];
        for end in [b"\n".as_slice(), b""] {
            let stream = [b"{}\n".as_slice(), &line, end].concat();
            for max_line in [length - 1, length, length + 1]
                .into_iter()
                .filter(|&max| max > 2)
            {
                let expected = expected(&stream, max_line, Bom::Skip);
                for size in [1, 1000, 65_536, stream.len()] {
                    let chunks: Vec<_> = stream.chunks(size).collect();
                    assert_eq!(
                        split(&mut Buffer::new(max_line, Bom::Skip), &chunks),
                        expected
                    );
                }
            }
        }
    }
}

#[test]
fn a_line_over_the_limit_is_dropped_in_bounded_memory() {
    let mut buffer = Buffer::new(100_000, Bom::Skip);
    let mut taken = Taken::default();
    for _ in 0..1000 {
        taken.feed(&mut buffer, &[b'x'; 10_000]);
        assert!(
            buffer.stats().held <= 100_001 + PAD as u64,
            "{:?}",
            buffer.stats()
        );
    }
    assert!(
        buffer.stats().held <= 2 * KEEP_BYTES as u64,
        "{:?}",
        buffer.stats()
    );
    taken.feed(&mut buffer, b"\n{}\n");
    let place = |offset, line_number| Place {
        offset,
        line_number,
    };
    let dropped = Line {
        bytes: vec![b'x'; HEAD_BYTES],
        place: place(0, 1),
        length: Some(10_000_000),
    };
    let after = Line {
        bytes: b"{}\n".to_vec(),
        place: place(10_000_001, 2),
        length: None,
    };
    assert_eq!(taken.lines, [dropped, after]);
}

#[test]
fn memory_lent_stays_as_it_is_until_the_next_call() {
    let mut buffer = Buffer::new(NO_LIMIT, Bom::Skip);
    buffer.next(b"{1").unwrap();
    let (_, Step::Carry { line, .. }) = buffer.next(b"1}\n{2").unwrap() else {
        panic!()
    };
    let first = line.as_ptr();
    assert_eq!(buffer.next(b"{2").unwrap().1, Step::NOTHING);
    let (_, Step::Carry { line, .. }) = buffer.next(b"2}\n").unwrap() else {
        panic!()
    };
    assert_eq!(line, b"{22}\n");
    assert_ne!(line.as_ptr(), first);
}

#[test]
fn after_a_huge_line_an_idle_buffer_holds_64_kib_at_most() {
    let mut buffer = Buffer::new(NO_LIMIT, Bom::Skip);
    for _ in 0..2 {
        for _ in 0..100 {
            buffer.next(&vec![b'x'; 100_000]).unwrap();
        }
        assert!(buffer.stats().held >= 10_000_000);
        assert!(
            matches!(buffer.next(b"\n").unwrap().1, Step::Carry { line, .. } if line.len() == 10_000_001)
        );
        buffer.next(b"").unwrap();
        assert!(
            buffer.stats().held <= BLOCK_BYTES as u64,
            "{:?}",
            buffer.stats()
        );
    }
    buffer.next(&vec![b'x'; 100_000]).unwrap();
    assert!(matches!(buffer.close().unwrap(), Step::Carry { line, .. } if line.len() == 100_000));
    buffer.next(b"").unwrap();
    assert!(
        buffer.stats().held <= BLOCK_BYTES as u64,
        "{:?}",
        buffer.stats()
    );
}

#[test]
fn work_is_linear_at_any_chunking() {
    let line = [b"{\"text\":\"".as_slice(), &[b'x'; 280], b"\"}\n"].concat();
    let long = [b"{".as_slice(), &vec![b'x'; 3_000_000], b"}\n"].concat();
    for stream in [
        line.repeat(10_000),
        long.clone(),
        [long, line.repeat(10_000)].concat(),
    ] {
        for size in [1, 1024, BLOCK_BYTES, stream.len()] {
            let mut buffer = Buffer::new(NO_LIMIT, Bom::Skip);
            for chunk in stream.chunks(size) {
                let mut at = 0;
                while at < chunk.len() {
                    at += buffer.next(&chunk[at..]).unwrap().0;
                }
            }
            let Stats {
                searched, copied, ..
            } = buffer.stats();
            let bytes = stream.len() as u64;
            let searches = if size <= BLOCK_BYTES {
                bytes
            } else {
                2 * bytes
            };
            assert!(
                (bytes..=searches).contains(&searched),
                "{searched} of {bytes} at {size}"
            );
            assert!(copied <= 3 * bytes, "{copied} of {bytes} at {size}");
        }
    }
}

fn streams() -> impl Strategy<Value = Vec<u8>> {
    let pieces: [&[u8]; 9] = [
        b"{}\n",
        b"\n",
        b"\r\n",
        b"\xef\xbb\xbf",
        b"\xef",
        b"\xbb",
        b"{",
        b"}",
        b"[1]\n",
    ];
    let piece = prop_oneof![
        6 => proptest::sample::select(pieces.to_vec()).prop_map(<[u8]>::to_vec),
        2 => proptest::collection::vec(any::<u8>(), 0..30),
        1 => (0..3000_usize).prop_map(|length| vec![b'x'; length]),
        1 => (60_000..70_000_usize).prop_map(|length| vec![b'x'; length]),
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_chunking_of_anything_gives_the_lines_of_the_definition(
        stream in streams(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
        max_line in prop_oneof![1..10_usize, 1000..3000_usize, 60_000..70_000_usize, Just(NO_LIMIT)],
        on_bom in prop_oneof![Just(Bom::Skip), Just(Bom::Keep)],
    ) {
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.push(0);
        cuts.push(stream.len());
        cuts.sort_unstable();
        let chunks: Vec<_> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
        let lines = split(&mut Buffer::new(max_line, on_bom), &chunks);
        prop_assert_eq!(lines, expected(&stream, max_line, on_bom));
    }
}

#[test]
fn the_unfinished_line_is_what_came_after_the_last_line_feed() {
    let stream = b"{}\n{\"a\":1}\n\n0123456789\n{";
    for limit in [5, NO_LIMIT] {
        let mut buffer = Buffer::new(limit, Bom::Keep);
        for at in 0..stream.len() {
            let came = &stream[..at];
            let from = came
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |lf| lf + 1);
            let unfinished = &came[from..];
            if unfinished.len() > limit {
                assert_eq!(buffer.unfinished(), Err(unfinished.len() as u64));
            } else {
                assert_eq!(buffer.unfinished(), Ok(unfinished));
            }
            buffer.next(&stream[at..=at]).unwrap();
        }
    }
}
