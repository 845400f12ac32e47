//! Measures the native core without Python, on inputs that are the same on every machine.
//!
//! `cargo bench --bench native` prints the speed of each case. `native CASE` runs one case once, within the function `counted_part`.
//! tools/instructions.py counts this function's instructions under valgrind. `native list` prints the names of the cases. The program
//! ignores options that cargo passes.

use std::fmt::Write as _;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use claude_wire::filter::Filter;
use claude_wire::kinds::peek::peek_lines;
use claude_wire::kinds::scan::KindSpans;
use claude_wire::lines::buffer::{Bom, Buffer};
use claude_wire::lines::place::Place;
use claude_wire::simd::{Key, Level};
use claude_wire::stream::{Sink, Stream};
use claude_wire::typed::plan::{may_be, Class, Field, Kind, Member, Plan, Shape, Top};
use claude_wire::typed::{Builder, Line, Reader};

const LINES: usize = 1_600;
const CHUNK: usize = 64 * 1024;
/// How long to repeat each case, in seconds.
const SECONDS: f64 = 0.5;
const WANTED: &[&str] = &["result", "assistant"];

/// The data that the cases read.
struct Inputs {
    /// 1600 lines with the same keys in the same order: deltas of two sessions, and four whole messages.
    like: Vec<u8>,
    /// The same lines, with the keys in a different order in each.
    unlike: Vec<u8>,
    /// One line of 3 MB.
    huge: Vec<u8>,
}

/// A function that does the work once. Its result depends on all of the work, so the compiler cannot remove any of it.
type Case = fn(&Inputs) -> usize;

/// Each case: its name, whether its work uses vector instructions, and its function.
const CASES: &[(&str, bool, Case)] = &[
    ("stream", true, stream),
    ("peek", true, |i| peek(&i.like, Level::Fast)),
    ("peek, plain", false, |i| peek(&i.like, Level::Plain)),
    ("peek, a line of 3 MB", true, |i| peek(&i.huge, Level::Fast)),
    ("peek, a line of 3 MB, plain", false, |i| {
        peek(&i.huge, Level::Plain)
    }),
    ("only", true, |i| only(&i.like, Level::Fast)),
    ("only, plain", false, |i| only(&i.like, Level::Plain)),
    ("only, lines unlike each other", true, |i| {
        only(&i.unlike, Level::Fast)
    }),
    ("coalesce", true, |i| coalesce(&i.like, Level::Fast)),
    ("coalesce, plain", false, |i| {
        coalesce(&i.like, Level::Plain)
    }),
    ("coalesce, lines unlike each other", true, |i| {
        coalesce(&i.unlike, Level::Fast)
    }),
    ("typed", false, |inputs| typed(&inputs.like)),
    ("typed, lines unlike each other", false, |inputs| {
        typed(&inputs.unlike)
    }),
];

/// A sink that counts lines.
struct Count(u64);

impl Sink for Count {
    const KEEPS_CARRIED: bool = false;

    fn lines(&mut self, data: &[u8], len: usize, _: Place) -> u64 {
        let lines = memchr::memchr_iter(b'\n', &data[..len]).count() as u64;
        self.0 += lines;
        lines
    }
    fn carried(&mut self, _: &[u8], _: usize, _: Place) {
        self.0 += 1;
    }
    fn merged(&mut self, _: &[u8], _: usize, _: Place) {
        self.0 += 1;
    }
    fn too_long(&mut self, _: &[u8], _: u64, _: Place) {}
}

fn stream(inputs: &Inputs) -> usize {
    let mut stream = Stream::new(Buffer::new(usize::MAX, Bom::Skip), None);
    let mut count = Count(0);
    for chunk in inputs.like.chunks(CHUNK) {
        stream.take(chunk, &mut count).expect("memory");
    }
    usize::try_from(count.0).expect("a count")
}

fn peek(data: &[u8], level: Level) -> usize {
    let mut ids = [0; 512];
    let mut kinds = [KindSpans::default(); 64];
    let (mut at, mut found) = (0, 0);
    while at < data.len() {
        let peeked = peek_lines(&data[at..], level, &mut ids, &mut kinds);
        at += peeked.bytes;
        found += peeked.lines + peeked.kinds;
    }
    found
}

fn only(data: &[u8], level: Level) -> usize {
    filter(data, Filter::new(Some(WANTED), false, level))
}

fn coalesce(data: &[u8], level: Level) -> usize {
    filter(data, Filter::new(None, true, level))
}

/// Filters the complete lines of each chunk. Returns how many bytes the filter let through.
fn filter(data: &[u8], mut filter: Filter) -> usize {
    let (mut start, mut kept) = (0, 0);
    while start < data.len() {
        let window = &data[start..data.len().min(start + CHUNK)];
        let end = memchr::memrchr(b'\n', window).map_or(0, |at| at + 1);
        let mut at = 0;
        while at < end {
            let taken = filter.take(&window[at..end], usize::MAX, Place::default());
            let taken = taken.expect("memory");
            let merged = filter.close(|_, len, _| kept += len);
            merged.expect("memory");
            kept += taken.kept;
            at += taken.bytes + taken.kept;
        }
        filter.rest();
        if end == 0 {
            break;
        }
        start += end;
    }
    kept
}

/// A builder that does not make objects: a case then measures only the pass over the lines.
struct Nothing;

impl Builder for Nothing {
    type Value = ();
    type Class = ();
    type Record = ();
    type Template = Vec<usize>;

    fn text(&mut self, bytes: &[u8], is_ascii: bool) -> Option<()> {
        black_box((bytes, is_ascii));
        Some(())
    }
    fn int(&mut self, value: i64) -> Option<()> {
        black_box(value);
        Some(())
    }
    fn float(&mut self, value: f64) -> Option<()> {
        black_box(value);
        Some(())
    }
    fn null(&mut self) {}
    fn bool(&mut self, _: bool) {}
    fn list(&mut self, _: std::vec::Drain<'_, ()>) -> Option<()> {
        Some(())
    }
    fn dict(&mut self, _: std::vec::Drain<'_, ()>) -> Option<()> {
        Some(())
    }
    fn unknown(&mut self, (): &(), (): &(), _: std::vec::Drain<'_, ()>) -> Option<()> {
        Some(())
    }
    fn begin(&mut self, (): &()) -> Option<()> {
        Some(())
    }
    fn set(&mut self, (): &mut (), slot: usize, (): ()) {
        black_box(slot);
    }
    fn finish(&mut self, (): &(), (): (), set: [u64; 2]) {
        black_box(set);
    }
    fn slot(&mut self, (): &(), _: usize) -> Option<()> {
        Some(())
    }
    fn template(&mut self, (): &(), slots: Vec<usize>) -> Option<Vec<usize>> {
        Some(slots)
    }
    fn stamp(&mut self, slots: &Vec<usize>, values: &mut Vec<()>) -> Option<()> {
        values.truncate(values.len() - black_box(slots).len());
        Some(())
    }
    fn deep_template(&mut self, (): &(), _: usize) -> Option<Vec<usize>> {
        Some(Vec::new())
    }
}

fn typed(data: &[u8]) -> usize {
    let mut reader = Reader::new(Nothing);
    reader.change_plan(plan_deltas);
    let (mut start, mut found) = (0, 0);
    while start < data.len() {
        let end = data.len().min(start + CHUNK);
        let lines = data[start..end].iter().rposition(|&byte| byte == b'\n');
        // A line that is longer than a chunk is one block.
        let rest = || data[end..].iter().position(|&byte| byte == b'\n');
        let lines = lines.map_or_else(|| end + 1 + rest().expect("a line"), |at| start + at + 1);
        reader.block(&data[start..lines], lines - start, |line, _, _| {
            found += usize::from(matches!(line, Line::Message((), _)));
        });
        start = lines;
    }
    assert_eq!(found, LINES, "all lines are read");
    found
}

/// Creates plans for the deltas' classes. Whole messages have no class and are read as dicts.
fn plan_deltas(plan: &mut Plan<(), ()>) {
    let text = kind(plan, may_be::TEXT | may_be::NULL, &[]);
    let whole = kind(plan, may_be::INT, &[]);
    let delta = kind(
        plan,
        may_be::RECORD,
        &[(0, "text_delta"), (1, "content_block_delta")],
    );
    let event = kind(
        plan,
        may_be::RECORD,
        &[(1, "content_block_delta"), (0, "text_delta")],
    );
    class(plan, "text_delta", &[("text", text)]);
    class(
        plan,
        "content_block_delta",
        &[("index", whole), ("delta", delta)],
    );
    class(
        plan,
        "stream_event",
        &[
            ("event", event),
            ("session_id", text),
            ("parent_tool_use_id", text),
            ("uuid", text),
            ("api_message_id", text),
        ],
    );
    plan.tops.push(Top {
        tag: b"stream_event".to_vec(),
        subtype: None,
        class: 2,
    });
    plan.unknown = Some(((), (), ()));
}

fn kind(plan: &mut Plan<(), ()>, may_be: u32, classes: &[(usize, &str)]) -> usize {
    let member = |&(class, tag): &(usize, &str)| Member {
        class,
        tag: tag.into(),
        opening: format!("{{\"type\":\"{tag}\"").into(),
    };
    plan.kinds.push(Kind {
        may_be,
        item: 0,
        classes: classes.iter().map(member).collect(),
        tag_key: b"type".to_vec(),
        words: Vec::new(),
        unknown: None,
    });
    plan.kinds.len() - 1
}

fn class(plan: &mut Plan<(), ()>, tag: &str, keys: &[(&str, usize)]) {
    let start = plan.fields.len();
    let kinds = keys.iter().map(|&(key, kind)| (key, Some(kind)));
    for (slot, (key, kind)) in kinds.chain([("type", None)]).enumerate() {
        plan.fields.push(Field::new(
            Key::new(key.as_bytes()).expect("memory"),
            kind,
            slot,
        ));
    }
    plan.classes.push(Class::Planned(Shape {
        class: (),
        fields: start..plan.fields.len(),
        required: 0,
        tag: tag.into(),
        extra: Some(keys.len() + 1),
    }));
}

/// A pseudo-random number generator with the same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    fn index(&mut self, end: u64) -> usize {
        usize::try_from(self.below(end)).expect("an index")
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn text(&mut self, length: u64) -> String {
        const PIECES: [&str; 8] = [
            "line ",
            "of ",
            "text, ",
            "日本",
            "\\n",
            "\\\"so\\\" ",
            "{",
            "😀 ",
        ];
        let mut text = String::new();
        while (text.len() as u64) < length {
            // At least nine of ten pieces are ASCII without escapes.
            let end = if self.below(10) == 0 { 8 } else { 3 };
            text += PIECES[self.index(end)];
        }
        text
    }
}

impl Inputs {
    fn new() -> Self {
        let mut numbers = Numbers(7);
        let (mut like, mut unlike) = (String::new(), String::new());
        for number in 0..LINES {
            let fields = if number % 400 == 399 {
                whole(&mut numbers, number)
            } else {
                delta(&mut numbers)
            };
            like += &object(&fields, 0);
            unlike += &object(&fields, number);
        }
        let huge = object(
            &[
                ("message", format!("\"{}\"", numbers.text(3_000_000))),
                ("type", "\"assistant\"".into()),
            ],
            0,
        );
        Self {
            like: like.into(),
            unlike: unlike.into(),
            huge: huge.into(),
        }
    }
}

fn delta(numbers: &mut Numbers) -> Vec<(&'static str, String)> {
    let session = numbers.below(2);
    let length = numbers.below(30);
    let text = numbers.text(length);
    let uuid = (numbers.below(1 << 31), numbers.below(1 << 31));
    vec![
        ("type", "\"stream_event\"".into()),
        (
            "event",
            format!("{{\"type\":\"content_block_delta\",\"index\":{session},\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}"),
        ),
        ("session_id", format!("\"6f78fcb6-05f6-4aee-9038-3ab9bd25883{session}\"")),
        ("parent_tool_use_id", "null".into()),
        ("uuid", format!("\"{:08x}-2891-4721-85e5-f80a{:08x}\"", uuid.0, uuid.1)),
        ("api_message_id", "\"msg_fake000000000002\"".into()),
    ]
}

/// Returns the members of an `assistant` or a `result` of 12 kB, in which `type` follows the text.
fn whole(numbers: &mut Numbers, number: usize) -> Vec<(&'static str, String)> {
    let name = if number % 800 == 399 {
        "assistant"
    } else {
        "result"
    };
    vec![
        (
            "message",
            format!(
                "{{\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}",
                numbers.text(12_000)
            ),
        ),
        (
            "session_id",
            "\"6f78fcb6-05f6-4aee-9038-3ab9bd258830\"".into(),
        ),
        ("type", format!("\"{name}\"")),
    ]
}

/// Returns a line with these members, rotated by `turned` places.
fn object(fields: &[(&str, String)], turned: usize) -> String {
    let mut line = String::from("{");
    for at in 0..fields.len() {
        let (key, value) = &fields[(at + turned) % fields.len()];
        let comma = if at == 0 { "" } else { "," };
        write!(line, "{comma}\"{key}\":{value}").expect("a string takes all");
    }
    line + "}\n"
}

/// Runs a case once. valgrind counts the instructions within this function, which it finds by its name.
#[inline(never)]
fn counted_part(case: Case, inputs: &Inputs) -> usize {
    black_box(case(black_box(inputs)))
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    if wanted == ["list"] {
        for (name, vectors, _) in CASES {
            println!("{}\t{name}", if *vectors { "vectors" } else { "plain" });
        }
        return ExitCode::SUCCESS;
    }
    let inputs = Inputs::new();
    if let [name] = wanted.as_slice() {
        let Some((_, _, case)) = CASES.iter().find(|(known, _, _)| known == name) else {
            eprintln!("no such case: {name}");
            return ExitCode::FAILURE;
        };
        println!("{}", counted_part(*case, &inputs));
        return ExitCode::SUCCESS;
    }
    for (name, _, case) in CASES {
        let bytes = if name.contains("3 MB") {
            inputs.huge.len()
        } else if name.contains("unlike") {
            inputs.unlike.len()
        } else {
            inputs.like.len()
        };
        let seconds = shortest(*case, &inputs);
        #[allow(clippy::cast_precision_loss)] // Fewer than 2^53 bytes.
        let rate = bytes as f64 / seconds / 1e9;
        println!("{name:<36} {rate:6.2} GB/s");
    }
    ExitCode::SUCCESS
}

/// Repeats a case for [`SECONDS`], and returns its shortest time in seconds.
fn shortest(case: Case, inputs: &Inputs) -> f64 {
    let begin = Instant::now();
    let mut least = f64::MAX;
    while begin.elapsed().as_secs_f64() < SECONDS {
        let start = Instant::now();
        counted_part(case, inputs);
        least = least.min(start.elapsed().as_secs_f64());
    }
    least
}
