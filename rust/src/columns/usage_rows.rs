//! [`UsageRows`]: the usage of the model's answers as small rows of numbers; [`UsageSums`]: adds up such rows, each answer once.
//!
//! A program that keeps the usage of many files stores the rows of each file. After a file has changed, it adds up all rows again. A row
//! has [`ROW_BYTES`] bytes, which are numbers, little-endian:
//!
//! ```text
//! bytes 0 to 15   key: a digest of the answer's ids
//! bytes 16 to 31  session, model: a digest of each name
//! bytes 32 to 39  time in microseconds since 1970, or NO_TIME
//! bytes 40 to 87  token counts: input, output, cache_creation, cache_creation_5m, cache_creation_1h, cache_read
//! ```
//!
//! The key is a digest of the message id and the request id, of the line's `uuid` if there is no message id, or of the line's path and
//! offset if there is no `uuid` either. Names are digests, too, so rows of different files can be compared. [`UsageRows::names`] has the
//! text of each name.
//!
//! Like [`Combine`](super::combine::Combine), this module counts each answer once: an original before a copy in a forked session's file,
//! which has a `request_session_id`, and the last row of a file before earlier rows. Which file comes first is up to the caller, who adds
//! the rows of all files in this order: all originals, then all copies.

use std::collections::{HashMap, HashSet};

use siphasher::sip128::{Hasher128, SipHasher13};

use super::batch::{Batch, Cell};
use super::spec::Spec;
use crate::fallible::{append, copied, push, reserve, NoMemory};

/// The number of words in a row, and in a sum.
pub const WORDS: usize = 11;
/// The size of a row in bytes, and of a sum.
pub const ROW_BYTES: usize = 8 * WORDS;
/// A larger number of tokens counts as this number, so that sums fit 64 bits.
pub const MAX_TOKENS: i64 = 1 << 40;
/// Names are cut to this many characters.
pub const MAX_CHARS: usize = 1000;
/// In place of a time or a period: the line has no time, or a time before 1970.
pub const NO_TIME: i64 = -1;
/// The model name in lines that the CLI itself wrote in place of an answer. No row is made for them.
const SYNTHETIC: &[u8] = b"<synthetic>";
/// The model name of an answer without one.
const UNKNOWN: &[u8] = b"?";

/// The text columns that [`UsageRows`] needs, from the tables `usage` and `results`.
const TEXTS: [&str; 10] = [
    "type",
    "model_usage",
    "path",
    "message_id",
    "request_id",
    "uuid",
    "request_session_id",
    "session_id",
    "model",
    "cwd",
];
/// The columns of numbers that [`UsageRows`] needs.
const NUMBERS: [&str; 9] = [
    "total_cost_usd",
    "offset",
    "timestamp",
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_creation_5m",
    "cache_creation_1h",
    "cache_read_input_tokens",
];

/// The rows of one file or a part of it.
#[derive(Debug)]
pub struct UsageRows {
    texts: [usize; TEXTS.len()],
    numbers: [usize; NUMBERS.len()],
    /// The rows of the answers that this file's session requested itself.
    pub originals: Vec<u8>,
    /// The rows of the answers that were copied from the file of the session that this one was forked from.
    pub copies: Vec<u8>,
    /// Each name once: its digest (8 bytes), its length in bytes (8 bytes), and the name as UTF-8.
    pub names: Vec<u8>,
    /// The digests of the names.
    known: HashSet<u64>,
    /// The first session id. Empty if there is none.
    pub session: Vec<u8>,
    /// The first directory that the CLI worked in. Empty if there is none.
    pub cwd: Vec<u8>,
    /// The session's cost, from the last `cost-state` that has a number: its `totalCostUSD` (8 bytes, a float), then the JSON of its
    /// `modelUsage`. Empty if there is none.
    pub cost: Vec<u8>,
    /// The session id of that `cost-state`. Empty if there is none.
    pub cost_session: Vec<u8>,
}

impl UsageRows {
    /// Makes an empty list of rows for a table with these columns. Returns `None` if a column that it needs is missing.
    #[must_use]
    pub fn new(spec: &Spec) -> Option<Self> {
        let find = |name: &&str| spec.columns.iter().position(|column| column.name == *name);
        let (mut texts, mut numbers) = ([0; TEXTS.len()], [0; NUMBERS.len()]);
        for (place, name) in texts.iter_mut().zip(&TEXTS) {
            *place = find(name)?;
        }
        for (place, name) in numbers.iter_mut().zip(&NUMBERS) {
            *place = find(name)?;
        }
        Some(Self {
            texts,
            numbers,
            originals: Vec::new(),
            copies: Vec::new(),
            names: Vec::new(),
            known: HashSet::new(),
            session: Vec::new(),
            cwd: Vec::new(),
            cost: Vec::new(),
            cost_session: Vec::new(),
        })
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    ///
    /// [`NoMemory`]. Some of the batch's rows may have been added.
    pub fn add(&mut self, batch: &Batch) -> Result<(), NoMemory> {
        let texts = self.texts.map(|place| &batch.columns[place]);
        let numbers = self.numbers.map(|place| &batch.columns[place]);
        for row in 0..batch.rows {
            let [tag, models, path, message, request, uuid, request_session, session, model, cwd] =
                texts.map(|column| match column.cell(row) {
                    Cell::Text(text) => Some(text),
                    _ => None,
                });
            let [cost, offset, time, counts @ ..] = numbers.map(|column| match column.cell(row) {
                Cell::Word(word) => Some(i64::from_le_bytes(word.to_le_bytes())),
                _ => None,
            });
            if tag == Some(b"cost-state") {
                if let Some(cost) = cost {
                    self.cost.clear();
                    append(&mut self.cost, &cost.to_le_bytes())?;
                    append(&mut self.cost, models.unwrap_or_default())?;
                    self.cost_session = copied(cut(session.unwrap_or_default()))?;
                }
                continue;
            }
            if model == Some(SYNTHETIC) {
                continue;
            }
            let key = match (message, uuid) {
                (Some(id), _) => digest(b'm', id, request.unwrap_or_default()),
                (None, Some(uuid)) if !uuid.is_empty() => digest(b'u', uuid, b""),
                _ => digest(
                    b'p',
                    path.unwrap_or_default(),
                    &offset.unwrap_or_default().to_le_bytes(),
                ),
            };
            keep_first(&mut self.session, session)?;
            keep_first(&mut self.cwd, cwd)?;
            let requested_in = request_session.filter(|name| !name.is_empty()).or(session);
            let requested_in = self.add_name(requested_in.unwrap_or_default())?;
            let model = self.add_name(model.filter(|name| !name.is_empty()).unwrap_or(UNKNOWN))?;
            let rows = match request_session {
                Some(_) => &mut self.copies,
                None => &mut self.originals,
            };
            let key = key.to_le_bytes();
            // The last row of an answer counts. Its rows are usually adjacent, so most of the others need not be kept.
            let last = rows.len().wrapping_sub(ROW_BYTES);
            if rows.get(last..).is_some_and(|last| last.starts_with(&key)) {
                rows.truncate(last);
            }
            reserve(rows, ROW_BYTES)?;
            rows.extend_from_slice(&key);
            rows.extend_from_slice(&requested_in.to_le_bytes());
            rows.extend_from_slice(&model.to_le_bytes());
            rows.extend_from_slice(&time.map_or(NO_TIME, |time| time.max(NO_TIME)).to_le_bytes());
            for count in counts {
                let count = count.unwrap_or_default().clamp(0, MAX_TOKENS);
                rows.extend_from_slice(&count.to_le_bytes());
            }
        }
        Ok(())
    }

    /// Adds a name to `names` if it is new, and returns its digest. The digest of an empty name is 0.
    fn add_name(&mut self, name: &[u8]) -> Result<u64, NoMemory> {
        if name.is_empty() {
            return Ok(0);
        }
        let name = cut(name);
        #[allow(clippy::cast_possible_truncation)]
        // A shorter digest is enough for names, of which there are few.
        let id = digest(b'n', name, b"") as u64;
        if !self.known.contains(&id) {
            self.known.try_reserve(1).map_err(|_| NoMemory)?;
            append(&mut self.names, &id.to_le_bytes())?;
            append(&mut self.names, &(name.len() as u64).to_le_bytes())?;
            append(&mut self.names, name)?;
            self.known.insert(id);
        }
        Ok(id)
    }
}

/// Stores a name in `first` if no name is stored there yet.
fn keep_first(first: &mut Vec<u8>, name: Option<&[u8]>) -> Result<(), NoMemory> {
    if first.is_empty() {
        *first = copied(cut(name.unwrap_or_default()))?;
    }
    Ok(())
}

/// Returns the first [`MAX_CHARS`] characters of a text in UTF-8.
fn cut(text: &[u8]) -> &[u8] {
    if text.len() <= MAX_CHARS {
        return text;
    }
    // Each character has one byte that is not a continuation byte.
    let is_start = |&(_, byte): &(usize, &u8)| byte & 0xc0 != 0x80;
    let mut starts = text.iter().enumerate().filter(is_start);
    starts.nth(MAX_CHARS).map_or(text, |(end, _)| &text[..end])
}

/// Returns a digest of two strings. `domain` separates the digests of message ids, uuids, places of lines, and names. Stored rows contain
/// these digests, so a change makes all stored rows useless.
fn digest(domain: u8, first: &[u8], second: &[u8]) -> u128 {
    use std::hash::Hasher;
    let mut hasher = SipHasher13::new();
    hasher.write(&[domain]);
    hasher.write(first);
    // UTF-8 never contains the byte 0xff, so it separates the two strings unambiguously.
    hasher.write(b"\xff");
    hasher.write(second);
    hasher.finish128().as_u128()
}

/// Adds up rows. An answer counts in the first call of [`add`](Self::add) that has it.
#[derive(Debug, Default)]
pub struct UsageSums {
    seen: HashSet<[u8; 16]>,
}

/// How [`UsageSums`] groups rows, besides by session and model.
#[derive(Debug)]
pub struct Grouping<'a> {
    /// The length of a period in microseconds. The periods are counted from 1970.
    pub period: i64,
    /// Lengths of prompts in tokens, in ascending order, above which an answer has another price. Rows are summed separately by the highest
    /// step that their prompt exceeds.
    pub steps: &'a [i64],
}

impl UsageSums {
    /// Adds the rows of a file. Returns one sum for each group, as [`WORDS`] numbers: session, model, period ([`NO_TIME`] without one), the
    /// highest step that the prompts exceed or 0, the number of answers, and the six token counts. If several of the rows belong to the
    /// same answer, the last one counts.
    ///
    /// # Errors
    ///
    /// [`NoMemory`]. The sums must not be used any more, because some of the rows may have been added.
    pub fn add(&mut self, rows: &[u8], grouping: &Grouping) -> Result<Vec<[i64; WORDS]>, NoMemory> {
        let (mut sums, mut places) = (Vec::new(), HashMap::new());
        // The group of the last row, and its place in `sums`. The rows of a group are usually adjacent, which saves the look-up.
        let mut last: Option<([i64; 4], usize)> = None;
        for row in rows.rchunks_exact(ROW_BYTES) {
            let (mut key, mut words) = ([0; 16], [0; WORDS - 2]);
            key.copy_from_slice(&row[..16]);
            for (word, bytes) in words.iter_mut().zip(row[16..].chunks_exact(8)) {
                let mut word_bytes = [0; 8];
                word_bytes.copy_from_slice(bytes);
                *word = i64::from_le_bytes(word_bytes);
            }
            self.seen.try_reserve(1).map_err(|_| NoMemory)?;
            if !self.seen.insert(key) {
                continue;
            }
            let [session, model, time, counts @ ..] = words;
            let [input, _, cache_creation, _, _, cache_read] = counts;
            let prompt = input.wrapping_add(cache_creation).wrapping_add(cache_read);
            let step = grouping.steps.iter().rev().find(|&&step| prompt > step);
            let period = if time < 0 {
                NO_TIME
            } else {
                time / grouping.period.max(1)
            };
            let group = [session, model, period, step.copied().unwrap_or(0)];
            let place = match last {
                Some((same, place)) if same == group => place,
                _ => {
                    places.try_reserve(1).map_err(|_| NoMemory)?;
                    *places.entry(group).or_insert(sums.len())
                }
            };
            last = Some((group, place));
            if place == sums.len() {
                let mut sum = [0; WORDS];
                sum[..4].copy_from_slice(&group);
                push(&mut sums, sum)?;
            }
            let sum = &mut sums[place][4..];
            sum[0] += 1;
            for (sum, count) in sum[1..].iter_mut().zip(counts) {
                // Adding up rows that this module made cannot overflow. But stored rows may be damaged, so wrap instead of panicking.
                *sum = sum.wrapping_add(count);
            }
        }
        Ok(sums)
    }
}

#[cfg(test)]
mod tests;
