use proptest::prelude::*;

use super::*;
use crate::lines::buffer::{Bom, Stats, HEAD_BYTES, KEEP_BYTES};
use crate::oracle;
use crate::simd::Level;

const NO_LIMIT: usize = usize::MAX;
const BOM: &[u8] = b"\xef\xbb\xbf";
const KIB64: usize = 64 * 1024;

/// A line that the stream or the definition returns.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    /// The line without its LF, or the head of a line over the limit.
    bytes: Vec<u8>,
    offset: u64,
    number: u64,
    /// The length of a line over the limit.
    length: Option<u64>,
}

/// Returns the lines of `stream` by definition.
fn expected(stream: &[u8], max_line: usize, on_bom: Bom) -> Vec<Line> {
    let mut rest = stream;
    if on_bom == Bom::Skip {
        rest = stream.strip_prefix(BOM).unwrap_or(stream);
    }
    let mut offset = (stream.len() - rest.len()) as u64;
    let mut lines = Vec::new();
    for (bytes, number) in rest.split_inclusive(|&byte| byte == b'\n').zip(1..) {
        let bare = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let is_long = bare.len() > max_line;
        let kept = if is_long {
            bare.len().min(HEAD_BYTES)
        } else {
            bare.len()
        };
        lines.push(Line {
            bytes: bare[..kept].to_vec(),
            offset,
            number,
            length: is_long.then_some(bare.len() as u64),
        });
        offset += bytes.len() as u64;
    }
    lines
}

/// A sink that collects lines.
struct Found {
    lines: Vec<Line>,
    max_line: usize,
}

impl Found {
    fn add(&mut self, line: &[u8], place: Place) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let is_long = line.len() > self.max_line;
        self.lines.push(Line {
            bytes: line[..if is_long {
                line.len().min(HEAD_BYTES)
            } else {
                line.len()
            }]
                .to_vec(),
            offset: place.offset,
            number: place.lines,
            length: is_long.then_some(line.len() as u64),
        });
    }
}

impl Sink for Found {
    const KEEPS_CARRIED: bool = false;

    fn lines(&mut self, data: &[u8], len: usize, place: Place) -> u64 {
        assert!(data[..len].ends_with(b"\n"));
        let mut next = place;
        for line in data[..len].split_inclusive(|&byte| byte == b'\n') {
            self.add(line, next);
            next.offset += line.len() as u64;
            next.lines += 1;
        }
        next.lines - place.lines
    }

    fn carried(&mut self, data: &[u8], len: usize, place: Place) {
        assert!(data.len() == len || data.len() == len + PAD);
        assert!(data[len..].iter().all(|&byte| byte == b'\n'));
        assert!(data[..len].strip_suffix(b"\n").unwrap_or(data).len() <= self.max_line);
        self.add(&data[..len], place);
    }

    fn merged(&mut self, data: &[u8], len: usize, place: Place) {
        assert_eq!(data.len(), len + PAD);
        self.add(&data[..len], place);
    }

    fn too_long(&mut self, head: &[u8], length: u64, place: Place) {
        self.lines.push(Line {
            bytes: head.to_vec(),
            offset: place.offset,
            number: place.lines,
            length: Some(length),
        });
    }
}

fn unfiltered(max_line: usize, on_bom: Bom) -> Stream {
    Stream::new(Buffer::new(max_line, on_bom), None)
}

fn fed(stream: &mut Stream, chunk: &[u8]) -> Vec<Line> {
    let mut found = Found {
        lines: Vec::new(),
        max_line: stream.buffer.max_line_bytes(),
    };
    stream.take(chunk, &mut found).unwrap();
    found.lines
}

fn ended(stream: &mut Stream) -> Vec<Line> {
    let mut found = Found {
        lines: Vec::new(),
        max_line: stream.buffer.max_line_bytes(),
    };
    stream.end(&mut found).unwrap();
    found.lines
}

fn split(stream: &mut Stream, chunks: &[&[u8]]) -> Vec<Line> {
    let mut lines: Vec<_> = chunks.iter().flat_map(|chunk| fed(stream, chunk)).collect();
    lines.extend(ended(stream));
    lines
}

/// Feeds data byte by byte, and with every two cuts, to one `Stream`, which must be like new after each pass.
fn check_at_every_chunking(data: &[u8], max_line: usize, on_bom: Bom) {
    let expected = expected(data, max_line, on_bom);
    let mut stream = unfiltered(max_line, on_bom);
    let bytes: Vec<_> = data.chunks(1).collect();
    assert_eq!(split(&mut stream, &bytes), expected);
    for two in 0..=data.len() {
        for one in 0..=two {
            let chunks = [&data[..one], &data[one..two], &data[two..]];
            let found = split(&mut stream, &chunks);
            assert_eq!(found, expected, "{data:?} cut at {one} and {two}");
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
fn a_chunk_of_whole_lines_is_not_copied() {
    let mut stream = unfiltered(NO_LIMIT, Bom::Skip);
    assert_eq!(fed(&mut stream, &b"{}\n".repeat(1000)).len(), 1000);
    let stats = Stats {
        searched: 3000,
        copied: 0,
        held: 0,
    };
    assert_eq!(stream.buffer.stats(), stats);
}

#[test]
fn the_limit_counts_bytes_without_the_line_feed() {
    for length in [1, 1023, 1024, 1025, KIB64 - 1, KIB64, KIB64 + 1] {
        let line = vec![b'x'; length];
        for end in [b"\n".as_slice(), b""] {
            let data = [b"{}\n".as_slice(), &line, end].concat();
            for max_line in [length - 1, length, length + 1]
                .into_iter()
                .filter(|&max| max > 2)
            {
                let expected = expected(&data, max_line, Bom::Skip);
                for size in [1, 1000, KIB64, data.len()] {
                    let chunks: Vec<_> = data.chunks(size).collect();
                    let found = split(&mut unfiltered(max_line, Bom::Skip), &chunks);
                    assert_eq!(found, expected);
                }
            }
        }
    }
}

#[test]
fn a_line_over_the_limit_is_dropped_in_bounded_memory() {
    let mut stream = unfiltered(100_000, Bom::Skip);
    for _ in 0..1000 {
        assert_eq!(fed(&mut stream, &[b'x'; 10_000]), []);
        assert!(stream.buffer.stats().held <= 100_001 + PAD as u64);
    }
    assert!(stream.buffer.stats().held <= 2 * KEEP_BYTES as u64);
    let dropped = Line {
        bytes: vec![b'x'; HEAD_BYTES],
        offset: 0,
        number: 1,
        length: Some(10_000_000),
    };
    let after = Line {
        bytes: b"{}".to_vec(),
        offset: 10_000_001,
        number: 2,
        length: None,
    };
    assert_eq!(fed(&mut stream, b"\n{}\n"), [dropped, after]);
}

#[test]
fn after_a_huge_line_an_idle_stream_holds_64_kib_at_most() {
    for filter in [None, Some(Filter::new(Some(&[]), false, Level::Fast))] {
        let mut stream = Stream::new(Buffer::new(NO_LIMIT, Bom::Skip), filter);
        for last in [&b"\n"[..], b"\n{\"a", b"\n"] {
            for _ in 0..100 {
                fed(&mut stream, &vec![b'x'; 100_000]);
            }
            assert!(stream.buffer.stats().held >= 10_000_000);
            assert_eq!(fed(&mut stream, last).len(), 1);
            assert!(stream.buffer.stats().held <= KIB64 as u64);
        }
        fed(&mut stream, &vec![b'x'; 100_000]);
        assert_eq!(ended(&mut stream).len(), 1);
        fed(&mut stream, b"");
        assert!(stream.buffer.stats().held <= KIB64 as u64);
    }
}

#[test]
fn work_is_linear_at_any_chunking() {
    let line = [b"{\"text\":\"".as_slice(), &[b'x'; 280], b"\"}\n"].concat();
    let long = [b"{".as_slice(), &vec![b'x'; 3_000_000], b"}\n"].concat();
    for data in [
        line.repeat(10_000),
        long.clone(),
        [long, line.repeat(10_000)].concat(),
    ] {
        for size in [1, 1024, KIB64, data.len()] {
            let mut stream = unfiltered(NO_LIMIT, Bom::Skip);
            for chunk in data.chunks(size) {
                fed(&mut stream, chunk);
            }
            let Stats {
                searched, copied, ..
            } = stream.buffer.stats();
            assert_eq!(searched, data.len() as u64);
            assert!(copied <= 3 * searched, "{copied} of {searched} at {size}");
        }
    }
}

#[test]
fn the_unfinished_line_begins_after_the_last_line_feed() {
    let data = b"{}\n{\"a\":1}\n\n0123456789\n{";
    for limit in [5, NO_LIMIT] {
        let mut stream = unfiltered(limit, Bom::Keep);
        for at in 0..data.len() {
            let from = data[..at].iter().rposition(|&byte| byte == b'\n');
            let unfinished = &data[from.map_or(0, |lf| lf + 1)..at];
            if unfinished.len() > limit {
                assert_eq!(stream.buffer.unfinished(), Err(unfinished.len() as u64));
            } else {
                assert_eq!(stream.buffer.unfinished(), Ok(unfinished));
            }
            fed(&mut stream, &data[at..=at]);
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

fn cuts() -> impl Strategy<Value = Vec<proptest::sample::Index>> {
    proptest::collection::vec(any::<proptest::sample::Index>(), 0..20)
}

fn chunks<'a>(data: &'a [u8], cuts: &[proptest::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(data.len() + 1)).collect();
    cuts.extend([0, data.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|cut| &data[cut[0]..cut[1]]).collect()
}

proptest! {
    #[test]
    fn any_chunking_of_anything_gives_the_lines_of_the_definition(
        data in streams(),
        cuts in cuts(),
        max_line in prop_oneof![1..10_usize, 1000..3000_usize, 60_000..70_000_usize, Just(NO_LIMIT)],
        on_bom in prop_oneof![Just(Bom::Skip), Just(Bom::Keep)],
    ) {
        let lines = split(&mut unfiltered(max_line, on_bom), &chunks(&data, &cuts));
        prop_assert_eq!(lines, expected(&data, max_line, on_bom));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_stream_cut_anywhere_is_filtered_chunk_by_chunk(
        data in crate::samples::lines(30),
        bom: bool,
        cuts in cuts(),
        only in proptest::option::of(Just(["result", "stream_event"])),
    ) {
        let bom: &[u8] = if bom { BOM } else { b"" };
        let data = [bom, &data].concat();
        let only = only.as_ref().map(<[_; 2]>::as_slice);
        // Where each line begins, to check the places of the returned lines.
        let starts: Vec<_> = expected(&data, NO_LIMIT, Bom::Skip);
        for level in [Level::Plain, Level::Fast] {
            let mut filter = Filter::new(only, true, level);
            filter.credit = u32::MAX / 2; // Enough credit that the filter never pauses merging.
            let mut stream = Stream::new(Buffer::new(NO_LIMIT, Bom::Skip), Some(filter));
            let mut model = oracle::Filter::new(only, true, NO_LIMIT);
            let (mut begin, mut end, mut first) = (bom.len(), 0, 0);
            for chunk in chunks(&data, &cuts) {
                end += chunk.len();
                let complete = oracle::lines(data.get(begin..end).unwrap_or_default());
                let expected = model.feed(&complete).lines.into_iter().map(|(index, bytes)| Line {
                    bytes,
                    ..starts[first + index].clone()
                });
                let found = fed(&mut stream, chunk).into_iter();
                let found = found.filter(|line| !oracle::is_blank(&line.bytes));
                prop_assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
                begin += complete.iter().map(|line| line.len() + 1).sum::<usize>();
                first += complete.len();
            }
            let rest = data.get(begin..).unwrap_or_default();
            let last = ended(&mut stream).into_iter().map(|line| line.bytes).next();
            let is_skipped = rest.is_empty() || oracle::is_skipped(rest, only);
            prop_assert_eq!(last.as_deref(), (!is_skipped).then_some(rest));
        }
    }
}
