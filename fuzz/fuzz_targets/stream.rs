//! Fuzzes the stream: cut anywhere, with and without a filter, and with and without vectors, it must return the oracle's lines for each
//! chunk.
#![no_main]

use claude_wire::filter::Filter;
use claude_wire::lines::buffer::{Bom, Buffer, HEAD_BYTES};
use claude_wire::lines::place::Place;
use claude_wire::simd::{Level, PAD};
use claude_wire::stream::{Sink, Stream};
use libfuzzer_sys::fuzz_target;

const ONLY: [&str; 3] = ["stream_event/content_block_delta", "result", "system/init"];
const BOM: &[u8] = b"\xef\xbb\xbf";

/// A line that the stream returns: its bytes without the LF, or the head of a line over the limit; its length; and its place.
type Line = (Vec<u8>, u64, Place);

struct Found {
    lines: Vec<Line>,
    max_line: usize,
}

impl Found {
    fn add(&mut self, line: &[u8], place: Place) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if line.len() > self.max_line {
            let head = line[..line.len().min(HEAD_BYTES)].to_vec();
            self.lines.push((head, line.len() as u64, place));
        } else if !oracle::is_blank(line) {
            self.lines.push((line.to_vec(), line.len() as u64, place));
        }
    }
}

impl Sink for Found {
    const KEEPS_CARRIED: bool = false;

    fn lines(&mut self, data: &[u8], len: usize, place: Place) -> u64 {
        assert_eq!(data[len - 1], b'\n');
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
        self.add(&data[..len], place);
    }

    fn merged(&mut self, data: &[u8], len: usize, place: Place) {
        assert_eq!(data.len(), len + PAD);
        self.add(&data[..len], place);
    }

    fn too_long(&mut self, head: &[u8], length: u64, place: Place) {
        self.lines.push((head.to_vec(), length, place));
    }
}

fuzz_target!(|input: &[u8]| {
    // The first bytes are the options, the limit, and the two chunk lengths, which alternate.
    let [how, limit, one, other, data @ ..] = input else {
        return;
    };
    let names: Option<&[&str]> = (how & 1 == 0).then_some(&ONLY);
    let coalesce = how & 2 == 0;
    let on_bom = if how & 8 == 0 { Bom::Skip } else { Bom::Keep };
    let max_line = match limit {
        255 => usize::MAX,
        _ if how & 16 == 0 => usize::from(*limit) + 1,
        _ => 64 + 4 * usize::from(*limit),
    };
    let scale = if how & 4 == 0 { 1 } else { 16 };
    let mut sizes = [*one, *other]
        .map(|size| 1 + scale * usize::from(size))
        .into_iter()
        .cycle();

    let mut model = oracle::Filter::new(names, coalesce, max_line);
    let mut streams = [Level::Fast, Level::Plain].map(|level| {
        let filter = (names.is_some() || coalesce).then(|| {
            let mut filter = Filter::new(names, coalesce, level);
            filter.credit = u32::MAX / 2; // Enough credit that the filter never pauses merging.
            filter
        });
        Stream::new(Buffer::new(max_line, on_bom), filter)
    });
    let mut place = Place {
        offset: 0,
        lines: 1,
    };
    if on_bom == Bom::Skip && data.starts_with(BOM) {
        place.offset = 3;
    }
    let (mut at, mut line_start) = (0, usize::try_from(place.offset).unwrap());
    while at < data.len() {
        let end = data.len().min(at + sizes.next().unwrap());
        let lines = oracle::lines(data.get(line_start..end).unwrap_or_default());
        let expected = expected_of(&mut model, &lines, max_line, &mut place);
        line_start += lines.iter().map(|line| line.len() + 1).sum::<usize>();
        for stream in &mut streams {
            let lines = Vec::new();
            let mut found = Found { lines, max_line };
            stream.take(&data[at..end], &mut found).unwrap();
            assert_eq!(found.lines, expected);
            assert_eq!(stream.position.taken, end as u64);
        }
        at = end;
    }

    let rest = data.get(line_start..).unwrap_or_default();
    let length = rest.len() as u64;
    let expected = if rest.len() > max_line {
        vec![(rest[..rest.len().min(HEAD_BYTES)].to_vec(), length, place)]
    } else if oracle::is_blank(rest) || oracle::is_skipped(rest, names) {
        Vec::new()
    } else {
        vec![(rest.to_vec(), length, place)]
    };
    for mut stream in streams {
        let lines = Vec::new();
        let mut found = Found { lines, max_line };
        stream.end(&mut found).unwrap();
        assert_eq!(found.lines, expected);
        assert_eq!(stream.position.offset(), 0);
    }
});

/// Returns the expected lines for the lines that a chunk completes. `place` is where the first line begins; the function moves it past the
/// last line. Lines over the limit are not filtered.
fn expected_of(
    model: &mut oracle::Filter,
    lines: &[&[u8]],
    max_line: usize,
    place: &mut Place,
) -> Vec<Line> {
    let places: Vec<_> = lines
        .iter()
        .map(|line| {
            let start = *place;
            place.offset += line.len() as u64 + 1;
            place.lines += 1;
            start
        })
        .collect();
    let (mut found, mut first) = (Vec::new(), 0);
    for part in lines.split_inclusive(|line| line.len() > max_line) {
        let (short, long) = match part {
            [short @ .., long] if long.len() > max_line => (short, Some(long)),
            short => (short, None),
        };
        let kept = model.feed(short).lines.into_iter();
        found.extend(kept.map(|(index, line)| {
            let length = line.len() as u64;
            (line, length, places[first + index])
        }));
        first += part.len();
        found.extend(long.map(|long| {
            let head = long[..long.len().min(HEAD_BYTES)].to_vec();
            (head, long.len() as u64, places[first - 1])
        }));
    }
    found
}
