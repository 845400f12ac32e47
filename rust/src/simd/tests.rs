use proptest::prelude::*;

use super::output::{escape_of, Long};
use super::plain::is_special;
use super::utf8::Decode;
use super::*;

/// An [`Operation`] that calls every search of an engine on `data`, starting at `at`.
struct All<'a> {
    data: &'a [u8],
    at: usize,
    part: &'a [u8],
}

#[derive(Debug, PartialEq, Eq)]
struct Found {
    strings: Vec<(usize, bool)>,
    container: Result<usize, usize>,
    special: usize,
    special_ascii: (usize, bool),
    valid_end: Option<(usize, bool)>,
    begins: bool,
}

impl Operation for All<'_> {
    type Output = Found;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Self { data, at, part } = self;
        let mut ahead = E::Ahead::default();
        let mut strings = Vec::new();
        let mut next = Some(0);
        while let Some(start) = next {
            let (end, escaped) = engine.string_end(&mut ahead, data, start);
            strings.push((end, escaped));
            let rest = data.get(end + 1..).unwrap_or_default();
            let opens = |pair: &[u8]| pair[0] != b'\\' && pair[1] == b'"';
            let opening = rest.windows(2).position(opens);
            next = opening.map(|found| end + 1 + found + 2);
        }
        Found {
            strings,
            container: engine.container_end(data, at),
            special: engine.special(data, at),
            special_ascii: engine.special_ascii(data, at),
            valid_end: engine.valid_end(data, at),
            begins: engine.begins(data, at, part),
        }
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "\"",
        "\"",
        "\\",
        "\\",
        "\\n",
        "\\u00e9",
        "\\\"",
        "\\\\",
        "\n",
        "\t",
        "{",
        "[",
        "}",
        "]",
        "é",
        ":",
        ",",
        "x",
        "a piece of text that is longer than one vector of bytes",
    ];
    let piece = prop_oneof![
        9 => proptest::sample::select(pieces.to_vec()).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
        1 => (0..140_usize).prop_map(|length| vec![b'x'; length]),
    ];
    proptest::collection::vec(piece, 0..50).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn all_engines_find_the_same(
        data in bytes(),
        at in any::<proptest::sample::Index>(),
        length in 0..100_usize,
        flip in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let mut data = data;
        let at = at.index(data.len() + 1);
        data.insert(at, b'[');
        let mut part = data[at..].to_vec();
        part.truncate(length);
        if let Some(flip) = flip.filter(|_| !part.is_empty()) {
            let place = flip.index(part.len());
            part[place] ^= 1;
        }
        let [plain, fast] = [Level::Plain, Level::Fast]
            .map(|level| run(level, All { data: &data, at, part: &part }));
        prop_assert_eq!(plain.begins, data[at..].starts_with(&part));
        let same = data[at..].iter().zip(&part).take_while(|(one, other)| one == other).count();
        prop_assert_eq!(difference(&data, at, &part), same);
        let special = data[at..].iter().position(|&byte| is_special(byte));
        let special = special.map_or(data.len(), |found| at + found);
        prop_assert_eq!(plain.special, special);
        prop_assert_eq!(plain.special_ascii, (special, data[at..special].is_ascii()));
        prop_assert_eq!(plain, fast);
    }
}

fn long_escaped(level: Level, bytes: &[u8], is_ascii: bool) -> Vec<u8> {
    let mut room = vec![0; 6 * bytes.len() + MOST_WIDTH];
    let to = room.as_mut_ptr();
    // SAFETY: `room` has 6 bytes per byte, and `MOST_WIDTH` more, which is what `Long::new` requires.
    let end = unsafe {
        if is_ascii {
            run(level, Long::<false>::new(bytes, to))
        } else {
            run(level, Long::<true>::new(bytes, to))
        }
    };
    room.truncate(end as usize - to as usize);
    room
}

/// Escapes a string character by character, without quotes: the reference for [`Pen`](super::Pen).
fn escaped(text: &str) -> String {
    let escape_one = |character: char| match character {
        '"' | '\\' | '\0'..='\x1f' => {
            let mut buffer = [0; 4];
            let byte = character.encode_utf8(&mut buffer).as_bytes()[0];
            String::from_utf8(escape_of(byte).to_vec()).unwrap()
        }
        '\u{2028}' => "\\u2028".to_owned(),
        '\u{2029}' => "\\u2029".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(escape_one).collect()
}

#[test]
fn control_characters_are_escaped_as_json_has_them() {
    for byte in (0..0x20).chain([b'"', b'\\']) {
        let text = char::from(byte).to_string();
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(escape_of(byte), &json.as_bytes()[1..json.len() - 1]);
    }
}

/// Writes some words, an ASCII string, and more words.
struct Written<'t>(&'t Words, &'t str);

impl Operation for Written<'_> {
    type Output = Vec<u8>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let Self(before, text) = self;
        let memory = [&[b'"'; Ascii::FRONT], text.as_bytes()].concat();
        let text = Ascii::after_front(&memory).unwrap();
        let mut out = Output::default();
        let pen = out.pen().ascii(engine, before, text).unwrap();
        pen.bytes(b"end").unwrap().end();
        out.written().to_vec()
    }
}

#[test]
fn each_byte_of_a_string_is_escaped() {
    let plain = "a".repeat(140);
    for before in ["words", "words that are too long for a single vector"] {
        let words = Words::new(before.as_bytes());
        for len in (0..plain.len()).step_by(if cfg!(miri) { 11 } else { 1 }) {
            // At index `len`, there is no byte to escape.
            for index in 0..=len {
                let mut text = plain[..len].to_owned();
                if index < len {
                    text.replace_range(index..=index, ["\"", "\\", "\n", "\u{1f}"][index % 4]);
                }
                let expected = format!("{before}\"{}\"end", escaped(&text));
                for level in [Level::Plain, Level::Fast] {
                    let written = run(level, Written(&words, &text));
                    assert_eq!(String::from_utf8(written).unwrap(), expected);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn whole_numbers_are_written(value: i64, shift in 0u32..64) {
        for value in [value >> shift, i64::MIN, i64::MAX, 0] {
            let mut out = Output::default();
            let pen = out.pen().int(b"", value).unwrap();
            pen.int(&Words::new(&[b'w'; 40]), value).unwrap().end();
            prop_assert_eq!(std::str::from_utf8(out.written()).unwrap(), format!("{value}{}{value}", "w".repeat(40)));
        }
    }

    #[test]
    fn strings_are_escaped_whatever_their_length(
        text in "[a-z]{0,140}[a-z\"\\\\\n\u{0}\u{1f}\u{7f}]{0,4}[a-z]{0,40}[\"a]{0,2}",
        wide in "[a\"\u{e9}\u{2014}\u{2027}\u{2028}\u{2029}\u{e2}\u{1f980}]{0,60}",
        before in "[a-z]{0,20}",
    ) {
        for (text, is_ascii) in [(text.clone(), true), (text.clone(), false), (text + &wide, false)] {
            let mut out = Output::default();
            let pen = out.pen().bytes(before.as_bytes()).unwrap();
            let pen = if is_ascii {
                let memory = [&[b'"'; Ascii::FRONT], text.as_bytes()].concat();
                let text = Ascii::after_front(&memory).unwrap();
                pen.ascii(Plain, &Words::new(b"words"), text).unwrap()
            } else {
                pen.bytes(b"words").unwrap().utf8(text.as_bytes()).unwrap()
            };
            pen.bytes(b"end").unwrap().end();
            let expected = format!("{before}words\"{}\"end", escaped(&text));
            prop_assert_eq!(std::str::from_utf8(out.written()), Ok(expected.as_str()));
            for level in [Level::Plain, Level::Fast] {
                let long = long_escaped(level, text.as_bytes(), is_ascii);
                prop_assert_eq!(long, escaped(&text).into_bytes());
            }
        }
    }
}

/// Decodes `text` into units of one size, and checks that nothing after them is written.
fn decoded<U: Unit>(text: &str, write: impl Fn(*mut U)) -> Vec<u32> {
    let len = text.chars().count();
    let mut units = vec![U::of(0x5a); len + 16];
    write(units.as_mut_ptr());
    let mut numbers: Vec<u32> = units.into_iter().map(Unit::number).collect();
    assert_eq!(numbers.split_off(len), [0x5a; 16]);
    numbers
}

/// Decodes `text` into units that have room for its characters, by each engine.
fn check_decoding<U: Unit>(text: &str) {
    let expected: Vec<u32> = text.chars().map(u32::from).collect();
    for level in [Level::Plain, Level::Fast] {
        // SAFETY: `decoded` allocates room for all characters.
        let found = decoded(text, |to: *mut U| {
            run(level, unsafe { Decode::new(text, to) });
        });
        assert_eq!(found, expected, "{text:?}");
    }
    let known = Utf8::new(text.as_bytes()).unwrap();
    assert_eq!(known.len(), expected.len());
    // SAFETY: as above.
    let found = decoded(text, |to: *mut U| unsafe { known.write(to) });
    assert_eq!(found, expected, "{text:?}");
}

#[test]
fn short_strings_are_valid_exactly_if_they_are_utf8() {
    let edges = [
        0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec,
        0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xff,
    ];
    let combinations = u32::try_from(edges.len().pow(4)).unwrap();
    for number in 0..combinations {
        let digit = |at| edges[number as usize / edges.len().pow(at) % edges.len()];
        let bytes = [digit(0), digit(1), digit(2), digit(3)];
        for len in 1..=4 {
            let bytes = &bytes[..len];
            match (std::str::from_utf8(bytes), Utf8::new(bytes)) {
                (Ok(text), Some(found)) => {
                    let highest = text.chars().max().map_or(0, u32::from);
                    assert_eq!(found.len(), text.chars().count());
                    assert_eq!(width_of(found.most()), width_of(highest));
                }
                (Err(_), None) => {}
                _ => panic!("{bytes:x?}"),
            }
        }
    }
}

/// How many bytes CPython uses for characters up to `most`; 0 for ASCII.
fn width_of(most: u32) -> usize {
    match most {
        0..=0x7f => 0,
        0x80..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

#[test]
fn each_combination_of_lengths_is_decoded() {
    let samples = [
        'a',
        '\u{e9}',
        '\u{65e5}',
        '\u{1f980}',
        '\u{7f}',
        '\u{7ff}',
        '\u{ffff}',
        '\u{10ffff}',
    ];
    for number in 0..8_usize.pow(4) {
        let four: String = (0..4)
            .map(|at| samples[number / 8_usize.pow(at) % 8])
            .collect();
        check_decoding::<u32>(&four.repeat(12));
    }
}

proptest! {
    #[test]
    fn strings_are_decoded_whatever_their_length(
        ascii in "[a-z]{0,40}",
        narrow in "[a-z\u{e9}\u{ff}\u{80}]{0,90}",
        wide in "[a \u{e9}\u{7ff}\u{800}\u{65e5}\u{d7ff}\u{e000}\u{ffff}]{0,90}",
        widest in "[a\u{65e5}\u{10000}\u{1f980}\u{10ffff}]{0,60}",
        invalid: u8,
        at: prop::sample::Index,
    ) {
        check_decoding::<u8>(&format!("{ascii}{narrow}{ascii}"));
        check_decoding::<u16>(&format!("{ascii}{wide}{ascii}{narrow}"));
        let all = format!("{ascii}{widest}{narrow}{wide}{ascii}");
        check_decoding::<u32>(&all);
        let mut bytes = all.into_bytes();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = invalid;
            prop_assert_eq!(Utf8::new(&bytes).is_some(), std::str::from_utf8(&bytes).is_ok());
        }
    }
}
