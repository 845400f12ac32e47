//! The public function `peek`: scans a line for its tags, and returns the `Kind` object of an earlier line with the same tags.

use std::collections::HashMap;
use std::panic::catch_unwind;
use std::ptr::null_mut;

use super::api::{Cell, Pointer, Size};
use super::object::Object;
use super::plan::item;
use super::public::{call, function};
use super::{body, with_line};
use crate::fallible::copied;
use crate::kinds::scan::{KindSpans, ScanLine};
use crate::simd::{run, Level};

/// The maximum number of kinds to remember, the same as `MAX_KNOWN` in kinds.py.
const MAX_KNOWN: usize = 1024;
/// The maximum total length in bytes of a remembered kind's three tags, the same as `LONGEST_KNOWN` in kinds.py.
const LONGEST_KNOWN: usize = 256;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The state of `peek`.
struct State {
    /// The Python implementation of `peek`.
    fallback: Object,
    /// `Kind` objects that the fallback has returned, by their [`Tags`].
    known: HashMap<Vec<u8>, Object>,
}

static PEEK: Cell<State> = Cell::new();

/// `new_peek((peek, module, doc))`: returns the native function `peek`, with `peek` as its fallback.
pub unsafe extern "C" fn new_peek(_: Pointer, argument: Pointer) -> Pointer {
    // SAFETY: CPython calls this with a live argument.
    body(|| unsafe {
        let argument = Object::borrowed(argument);
        let fallback = item(&argument, 0)?;
        let made = function(c"peek", peek, &argument)?;
        let known = HashMap::new();
        PEEK.replace(State { fallback, known });
        Some(made)
    })
}

/// A line's three tags, as a key of [`State::known`]: for each tag a quote, its bytes as in the line, and an LF. An absent tag is only an
/// LF. A line does not contain an LF, so lines of different kinds have different keys.
///
/// The key of `{"type":"system","subtype":"init"}` is `"system`, LF, `"init`, LF, LF.
struct Tags {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Tags {
    const MAX: usize = LONGEST_KNOWN + 3 * 2;

    /// Returns the tags of a line; `None` if they are longer than [`LONGEST_KNOWN`].
    fn of(line: &[u8], kind: &KindSpans) -> Option<Self> {
        let spans = [kind.name, kind.subtype, kind.detail];
        if spans.iter().flatten().map(|span| span.len).sum::<usize>() > LONGEST_KNOWN {
            return None;
        }
        let mut tags = Self {
            bytes: [b'\n'; Self::MAX],
            len: 0,
        };
        for span in spans {
            if let Some(span) = span {
                tags.bytes[tags.len] = b'"';
                tags.len += 1;
                tags.bytes[tags.len..tags.len + span.len].copy_from_slice(span.of(line));
                tags.len += span.len;
            }
            tags.len += 1;
        }
        Some(tags)
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Returns the tags of a line, which may begin with a byte order mark. Returns `None` if the fallback must find the kind.
fn tags_of(line: &[u8]) -> Option<Tags> {
    let start = if line.starts_with(BOM) { BOM.len() } else { 0 };
    let found = run(Level::Fast, ScanLine(line, start));
    // An LF before the last byte means that more lines follow. For such data, the fallback returns the kind without tags.
    if found.end == line.len() {
        Tags::of(line, &found.kind)
    } else {
        None
    }
}

/// `peek(line)`.
unsafe extern "C" fn peek(
    _: Pointer,
    arguments: *const Pointer,
    count: Size,
    names: Pointer,
) -> Pointer {
    // SAFETY: CPython calls this with `count` live positional arguments, then one live argument for each of `names`. This function has
    // no reference to the state while it calls the fallback or `with_line`, which may run other code.
    unsafe {
        let tags = if count == 1 && names.is_null() {
            with_line(*arguments, |line| catch_unwind(|| tags_of(line)).ok()?)
        } else {
            None
        };
        let Some(state) = (*PEEK.0.get()).as_ref() else {
            return null_mut();
        };
        if let Some(kind) = tags
            .as_ref()
            .and_then(|tags| state.known.get(tags.as_bytes()))
        {
            return kind.clone().release();
        }
        let fallback = state.fallback.clone();
        let kind = call(&fallback, arguments, count.unsigned_abs(), names);
        if let (Some(tags), Some(state), false) = (tags, (*PEEK.0.get()).as_mut(), kind.is_null()) {
            if state.known.len() < MAX_KNOWN && state.known.try_reserve(1).is_ok() {
                if let Ok(tags) = copied(tags.as_bytes()) {
                    let kind = Object::borrowed(kind);
                    state.known.entry(tags).or_insert(kind);
                }
            }
        }
        kind
    }
}
