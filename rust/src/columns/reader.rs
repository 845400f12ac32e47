//! [`Reader`]: reads sources line by line into batches, and counts the values that did not fit.
//!
//! One buffer of at most 256 KiB serves all sources, so its bytes are still in the processor's cache when the reader walks their lines:
//!
//! ```text
//! …rows made… │ complete lines │ start of a line │ free
//!             at               complete          filled
//! ```
//!
//! When no complete line is left, the start of the next line moves to the front, and one read fills the free part. If a line is longer than
//! the buffer, the buffer grows until the line is read. The memory in use is this buffer, one batch, and the longest line.
//!
//! Reading the ids and tokens of the table `usage` takes 0.56 CPU seconds per GB (lines of 1.7 KB, AVX2): 0.19 for the kernel's page copy,
//! 0.07 for validating UTF-8, and 0.30 for the lines. Reading 14 columns with text takes 0.74. A buffer of 64 KiB is not faster. A separate
//! pass that finds the lines before the walk would take 0.03 more.
// Every operation must be inlined into one function per engine: the compiler emits vector instructions only in this function.
#![allow(clippy::inline_always)]

use std::io;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::batch::Batch;
use super::rows::{Line, Rows};
use super::source::{read, Open, Source};
use super::spec::Spec;
use super::values::Fault;
use crate::fallible::{with_room, NoMemory};
use crate::filter::names::Names;
use crate::kinds::scan::scan;
use crate::simd::{run, Engine, Level, Operation};

/// The size of the buffer, unless a line is longer, or the range is shorter.
pub const BUFFER_BYTES: usize = 256 * 1024;
/// The size of the buffer for a short range. Filling a larger buffer with zeros takes longer than reading the range.
const SMALL_BUFFER_BYTES: usize = 16 * 1024;
/// A batch ends after a line if the batch then has at least this many rows.
pub const BATCH_ROWS: usize = 16 * 1024;
/// A batch ends when its values have at least this many bytes (2 MiB). The reader checks this before each read.
pub const BATCH_BYTES: usize = 2 * 1024 * 1024;
/// The maximum number of problems that a report keeps with their places. The report only counts later problems.
pub const MAX_CASES: usize = 100;

/// The UTF-8 byte order mark.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The decoder's reply to a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// The same object, encoded as a line that this module understands.
    Line(Vec<u8>),
    /// The line is not a JSON object.
    Refused,
    /// The decoder ran out of memory.
    NoMemory,
    /// The decoder failed, for a reason other than the line.
    Failed,
}

/// A function that decodes a line that this module does not understand.
pub type Decode = Box<dyn Fn(&[u8]) -> Reply + Send + Sync>;

/// What to read from the lines, and how.
pub struct Plan {
    /// The table to make.
    pub spec: Spec,
    /// The wanted kinds of lines; `None` for all.
    pub only: Option<Names>,
    /// Whether the first problem ends the pass with [`Failure::Strict`].
    pub strict: bool,
    /// The maximum length of a line in bytes, without its LF.
    pub max_line: usize,
    /// Which instructions of the processor to use.
    pub level: Level,
    /// The decoder for lines that this module does not understand.
    pub decode: Decode,
}

/// The kinds of problems in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Problem {
    /// A string has a lone surrogate, which was replaced by U+FFFD.
    Surrogate,
    /// A value's type is not its column's type, or the value is out of range. The value was replaced by null.
    Misfit,
    /// The line is not a JSON object.
    Invalid,
    /// The line is longer than [`Plan::max_line`].
    TooLong,
    /// The line has too many content blocks, or its rows would be too large.
    TooManyBlocks,
}

/// A problem and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The kind of problem.
    pub problem: Problem,
    /// The index of the column, for a surrogate or a misfit.
    pub column: Option<usize>,
    /// The index of the source.
    pub source: usize,
    /// The number of bytes before the line in its source.
    pub offset: u64,
}

/// What one pass over all sources counted.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of bytes read.
    pub bytes: u64,
    /// The number of lines read, not counting blank lines.
    pub lines: u64,
    /// The number of lines of unwanted kinds.
    pub skipped: u64,
    /// The number of rows made.
    pub rows: u64,
    /// The number of lines passed to the decoder.
    pub decoded: u64,
    /// The number of lines without a row because they are not JSON objects, are too long, or have too many blocks.
    pub invalid: u64,
    /// For each column, the number of lone surrogates in its strings.
    pub surrogates: Vec<u64>,
    /// For each column, the number of values that did not fit its type.
    pub misfits: Vec<u64>,
    /// The first problems, with their places.
    pub cases: Vec<Case>,
}

impl Report {
    /// Returns an empty report for a table with this many columns.
    ///
    /// # Errors
    ///
    /// [`NoMemory`].
    pub fn new(columns: usize) -> Result<Self, NoMemory> {
        let (mut surrogates, mut misfits) = (with_room(columns)?, with_room(columns)?);
        surrogates.resize(columns, 0);
        misfits.resize(columns, 0);
        Ok(Self {
            surrogates,
            misfits,
            cases: with_room(MAX_CASES)?,
            ..Self::default()
        })
    }

    /// Counts a problem that occurred `times` times, and keeps its place if it is among the first problems.
    fn add(&mut self, case: Case, times: u32) {
        let count = match (case.problem, case.column) {
            (Problem::Surrogate, Some(column)) => &mut self.surrogates[column],
            (Problem::Misfit, Some(column)) => &mut self.misfits[column],
            _ => &mut self.invalid,
        };
        *count += u64::from(times);
        // `new` has reserved room, so this push does not allocate.
        if self.cases.len() < MAX_CASES.min(self.cases.capacity()) {
            self.cases.push(case);
        }
    }
}

/// Why a pass ended before it had read all sources.
#[derive(Debug)]
pub enum Failure {
    /// Opening or reading the source with this index failed.
    Io(io::Error, usize),
    /// A line has this problem. Only a plan with [`Plan::strict`] fails because of it.
    Strict(Case),
    /// The decoder failed.
    Decoder,
    /// Memory ran out for a line or for its rows.
    NoMemory,
}

impl From<NoMemory> for Failure {
    fn from(NoMemory: NoMemory) -> Self {
        Self::NoMemory
    }
}

/// Reads sources one after another.
pub struct Reader {
    plan: Arc<Plan>,
    sources: Arc<Vec<Source>>,
    report: Arc<Mutex<Report>>,
    rows: Rows,
    /// The index of the current source, or of the next one if none is open.
    source: usize,
    open: Option<Open>,
    buffer: Vec<u8>,
    /// The number of bytes in the source before the buffer's first byte.
    base: u64,
    /// The index of the next line in the buffer.
    at: usize,
    /// The index after the last LF in the buffer.
    complete: usize,
    /// Whether the buffer is valid UTF-8 up to `complete`.
    clean: bool,
    /// The index after the bytes read into the buffer.
    filled: usize,
    /// Whether the source has no more lines to read.
    ended: bool,
    /// Whether to skip the bytes up to the next LF: they belong to a line of another range, or to a line that is too long.
    skipping: bool,
}

/// Locks a report. A poisoned lock is harmless, because each count is valid at any time.
pub fn lock(report: &Mutex<Report>) -> MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reader {
    /// Creates a reader that begins with the first source. The reader counts in `report`.
    ///
    /// # Errors
    ///
    /// [`NoMemory`].
    pub fn new(
        plan: Arc<Plan>,
        sources: Arc<Vec<Source>>,
        report: Arc<Mutex<Report>>,
    ) -> Result<Self, NoMemory> {
        Ok(Self {
            rows: Rows::new(&plan.spec)?,
            plan,
            sources,
            report,
            source: 0,
            open: None,
            buffer: Vec::new(),
            base: 0,
            at: 0,
            complete: 0,
            clean: true,
            filled: 0,
            ended: false,
            skipping: false,
        })
    }

    /// Returns the next rows; `None` after all sources were read.
    ///
    /// # Errors
    ///
    /// See [`Failure`]. After an error the reader returns no more rows.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, Failure> {
        while self.source < self.sources.len() {
            match self.step() {
                Ok(true) => return Ok(Some(self.rows.take_batch()?)),
                Ok(false) => (),
                Err(failure) => {
                    self.source = self.sources.len();
                    return Err(failure);
                }
            }
        }
        // The last batch may have room for many more rows. Return a copy without that room, or the batch itself if memory runs out.
        let left = mem::take(&mut self.rows.batch);
        let left = left.copy().unwrap_or(left);
        Ok(Some(left).filter(|batch| batch.rows > 0))
    }

    /// Takes one step: makes rows of some lines, reads once, or opens or closes a source. Returns true if the batch is full.
    fn step(&mut self) -> Result<bool, Failure> {
        if self.at < self.complete {
            self.lines()?;
            return Ok(self.rows.batch.rows >= BATCH_ROWS);
        }
        if self.rows.batch.rows > 0 && self.rows.batch.bytes() >= BATCH_BYTES {
            return Ok(true);
        }
        let source = &self.sources[self.source];
        let failed = |error| Failure::Io(error, self.source);
        if self.ended {
            self.open = None;
            self.ended = false;
            self.source += 1;
        } else if let Some(open) = &mut self.open {
            // Room for the rest of the range, for the byte before it, and for an LF that its last line may lack. If the last line goes on
            // after the range, the buffer grows.
            let left = source.stop.saturating_sub(self.base).saturating_add(2);
            let size = usize::try_from(left).unwrap_or(usize::MAX);
            let size = size.clamp(SMALL_BUFFER_BYTES, BUFFER_BYTES);
            let room = make_room(&mut self.buffer, self.at..self.filled, size)?;
            self.base += self.at as u64;
            self.filled -= self.at;
            (self.at, self.complete) = (0, 0);
            let read = read(open, &mut self.buffer[self.filled..room]).map_err(failed)?;
            self.take(read)?;
        } else {
            // Also read the byte before the range: if it is an LF, a line begins at the start of the range.
            self.base = source.start.saturating_sub(1);
            self.open = Some(source.open(self.base).map_err(failed)?);
            self.skipping = source.start > 0;
            (self.at, self.complete, self.filled) = (0, 0, 0);
        }
        Ok(false)
    }

    /// Handles the `read` bytes that were added to the buffer; 0 means the end of the source. Finds the end of the complete lines, and
    /// validates their UTF-8.
    fn take(&mut self, read: usize) -> Result<(), Failure> {
        lock(&self.report).bytes += read as u64;
        let begins = self.base == 0 && self.filled < BOM.len();
        self.filled += read;
        if read == 0 {
            self.ended = true;
            if self.filled > 0 {
                self.buffer[self.filled] = b'\n';
                self.filled += 1;
            }
        } else if begins && self.filled < BOM.len() {
            return Ok(());
        }
        if begins && self.buffer.starts_with(BOM) {
            // Overwrite the byte order mark with spaces, which may begin a line. The first line then still has the offset 0.
            self.buffer[..BOM.len()].fill(b' ');
        }
        let data = &self.buffer[..self.filled];
        self.complete = memchr::memrchr(b'\n', data).map_or(0, |feed| feed + 1);
        self.clean = simdutf8::basic::from_utf8(&data[..self.complete]).is_ok();
        if self.complete == 0 && (self.skipping || self.filled > self.plan.max_line) {
            self.at = self.filled;
            if !self.skipping {
                self.skipping = true;
                return self.too_long(0);
            }
        }
        Ok(())
    }

    /// Reports that the line at `begin` in the buffer is too long, unless it belongs to another range.
    fn too_long(&self, begin: usize) -> Result<(), Failure> {
        if self.base + begin as u64 >= self.sources[self.source].stop {
            return Ok(());
        }
        lock(&self.report).lines += 1;
        self.problem(Problem::TooLong, None, 1, begin)
    }

    /// Makes rows of the complete lines in the buffer. Returns early at a line that needs the decoder, after a line with problems, and when
    /// the batch is full.
    fn lines(&mut self) -> Result<(), Failure> {
        if self.skipping {
            self.skipping = false;
            self.at += line_end(&self.buffer[self.at..]) + 1;
        }
        let source = &self.sources[self.source];
        let left = source.stop.saturating_sub(self.base);
        let end = usize::try_from(left).map_or(self.complete, |left| left.min(self.complete));
        if self.at >= end {
            self.ended |= end < self.complete || self.base + self.at as u64 >= source.stop;
            self.at = self.complete;
            return Ok(());
        }
        let lines = Lines {
            plan: &self.plan,
            rows: &mut self.rows,
            data: &self.buffer[..self.complete],
            clean: self.clean,
            at: self.at,
            end,
            path: source.name.as_deref(),
            base: self.base,
        };
        let (stop, at) = lines.take(&self.report, true);
        self.at = at;
        match stop {
            Stop::End => Ok(()),
            Stop::Noted(begin) => self.notes(begin),
            Stop::Unclear => self.decode_line(),
            Stop::NoMemory => Err(Failure::NoMemory),
        }
    }

    /// Passes the next line to the decoder, and makes rows of the line that it returns.
    #[cold]
    fn decode_line(&mut self) -> Result<(), Failure> {
        let begin = self.at;
        let line = &self.buffer[begin..self.complete];
        let line = &line[..line_end(line)];
        self.at += line.len() + 1;
        if line.iter().all(|byte| b" \t\r".contains(byte)) {
            return Ok(());
        }
        if line.len() > self.plan.max_line {
            return self.too_long(begin);
        }
        let mut report = lock(&self.report);
        report.lines += 1;
        report.decoded += 1;
        drop(report);
        let reply = match (self.plan.decode)(line.strip_suffix(b"\r").unwrap_or(line)) {
            Reply::Failed => return Err(Failure::Decoder),
            Reply::NoMemory => return Err(Failure::NoMemory),
            Reply::Refused => return self.problem(Problem::Invalid, None, 1, begin),
            Reply::Line(line) => line,
        };
        let lines = Lines {
            plan: &self.plan,
            rows: &mut self.rows,
            data: &reply,
            clean: true,
            at: 0,
            end: reply.len(),
            path: self.sources[self.source].name.as_deref(),
            base: self.base + begin as u64,
        };
        match lines.take(&self.report, false).0 {
            Stop::End => Ok(()),
            Stop::Noted(_) => self.notes(begin),
            // This module understands every line that the decoder writes. If it does not, report the line instead of losing it silently.
            Stop::Unclear => self.problem(Problem::Invalid, None, 1, begin),
            Stop::NoMemory => Err(Failure::NoMemory),
        }
    }

    /// Reports the problems of the line at `begin` in the buffer.
    fn notes(&mut self, begin: usize) -> Result<(), Failure> {
        for note in self.rows.take_notes() {
            self.problem(note.problem, note.column, note.times, begin)?;
        }
        Ok(())
    }

    /// Counts a problem of the line at `at` in the buffer. Fails if the plan is strict.
    fn problem(
        &self,
        problem: Problem,
        column: Option<usize>,
        times: u32,
        at: usize,
    ) -> Result<(), Failure> {
        let case = Case {
            problem,
            column,
            source: self.source,
            offset: self.base + at as u64,
        };
        lock(&self.report).add(case, times);
        if self.plan.strict {
            return Err(Failure::Strict(case));
        }
        Ok(())
    }
}

/// Moves the range `kept` of a buffer to the buffer's start, and makes room for a read after it, in a buffer of at least `size` bytes.
/// Returns the end of the room.
fn make_room(buffer: &mut Vec<u8>, kept: Range<usize>, size: usize) -> Result<usize, NoMemory> {
    let length = kept.len();
    if buffer.len() > BUFFER_BYTES && length < BUFFER_BYTES / 2 {
        let mut new = with_room(BUFFER_BYTES)?;
        new.extend_from_slice(&buffer[kept]);
        new.resize(BUFFER_BYTES, 0);
        *buffer = new;
    } else {
        buffer.copy_within(kept, 0);
    }
    // Keep one byte free, for the LF that the last line of a source may lack.
    let is_full = length + 1 >= buffer.len();
    if is_full || buffer.len() < size {
        let size = size.max(if is_full { 2 * buffer.len() } else { 0 });
        let more = buffer.try_reserve_exact(size - buffer.len());
        more.map_err(|_| NoMemory)?;
        buffer.resize(size, 0);
    }
    Ok(buffer.len() - 1)
}

/// Returns the index of the first LF, or the length of `data`.
fn line_end(data: &[u8]) -> usize {
    memchr::memchr(b'\n', data).unwrap_or(data.len())
}

/// Why [`Lines::take`] stopped.
enum Stop {
    /// All lines were read, or the batch is full.
    End,
    /// The decoder must read the next line.
    Unclear,
    /// The line that begins at this index was read, but has problems.
    Noted(usize),
    /// Memory ran out for the rows of the next line.
    NoMemory,
}

/// Makes rows of the lines in `data[at..end]`.
struct Lines<'a> {
    plan: &'a Plan,
    rows: &'a mut Rows,
    data: &'a [u8],
    /// Whether `data` is valid UTF-8. If not, each line is checked.
    clean: bool,
    /// The index of the next line.
    at: usize,
    end: usize,
    /// The name of the file.
    path: Option<&'a [u8]>,
    /// The number of bytes in the source before `data`.
    base: u64,
}

impl Lines<'_> {
    /// Makes rows until it must stop. Returns why, and the index of the next line. With `counts`, it adds the lines to the report; a line
    /// that the decoder returned was counted before.
    fn take(mut self, report: &Mutex<Report>, counts: bool) -> (Stop, usize) {
        let before = self.rows.batch.rows;
        let (stop, taken, skipped) = run(self.plan.level, &mut self);
        let mut report = lock(report);
        report.lines += if counts { taken } else { 0 };
        report.skipped += skipped;
        report.rows += (self.rows.batch.rows - before) as u64;
        (stop, self.at)
    }
}

impl Operation for &mut Lines<'_> {
    type Output = (Stop, u64, u64);

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        let (mut taken, mut skipped) = (0, 0);
        let rows = &mut *self.rows;
        while self.at < self.end && rows.batch.rows < BATCH_ROWS {
            let begin = self.at;
            if !self.clean {
                let line = &self.data[begin..];
                if simdutf8::basic::from_utf8(&line[..line_end(line)]).is_err() {
                    return (Stop::Unclear, taken, skipped);
                }
            }
            if let Some(only) = &self.plan.only {
                let found = scan(engine, self.data, begin);
                if !only.want(self.data, &found.kind) {
                    self.at = found.end;
                    taken += 1;
                    skipped += 1;
                    continue;
                }
            }
            let line = Line {
                data: self.data,
                at: begin,
                path: self.path,
                offset: self.base + begin as u64,
            };
            let before = rows.batch.rows;
            let (end, noted) = match rows.add(engine, &self.plan.spec, line) {
                Ok(added) => added,
                Err(Fault::Unclear) => return (Stop::Unclear, taken, skipped),
                Err(Fault::NoMemory) => return (Stop::NoMemory, taken, skipped),
            };
            if end - begin > self.plan.max_line.saturating_add(1) {
                rows.batch.truncate(before);
                rows.take_notes();
                return (Stop::Unclear, taken, skipped);
            }
            self.at = end;
            taken += 1;
            if noted {
                return (Stop::Noted(begin), taken, skipped);
            }
        }
        (Stop::End, taken, skipped)
    }
}

#[cfg(test)]
mod tests;
