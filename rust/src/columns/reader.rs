//! Reads files and ranges of files line by line into batches, and reports values that did not fit.
//!
//! One buffer serves all files: a piece of 256 KiB is still in the cache when its lines are walked. A longer line makes the buffer grow
//! until that line is done. Memory is this buffer, one batch, and what the longest line needs.
//!
//! Of 0.56 CPU seconds a GB for the ids and tokens of the table `usage` (transcripts with lines of 1.7 KB, AVX2), the copy of the pages
//! by the system is 0.19, the look for UTF-8 0.07, and the lines 0.30. 14 columns with text take 0.74. Pieces of 64 KiB were not
//! faster. [`crate::lines::frame`] before the walk, which finds the ends of lines as well, took 0.03 more.
// The operations are inlined into one function per engine: only there the vector instructions may be used.
#![allow(clippy::inline_always)]

use std::io;
use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::batch::{with_room, Batch, NoMemory};
use super::rows::{Line, Rows};
use super::source::{read, Open, Source};
use super::spec::Spec;
use super::values::Fault;
use crate::filter::names::Names;
use crate::kinds::scan::scan;
use crate::simd::{run, Engine, Level, Operation};

/// Bytes that are read at once.
pub const BUFFER_BYTES: usize = 256 * 1024;
/// A batch ends with the line that gives it this many rows or more.
pub const BATCH_ROWS: usize = 16 * 1024;
/// A batch ends when its values have this many bytes. Checked once for each piece that is read.
pub const BATCH_BYTES: usize = 2 * 1024 * 1024;
/// Problems to keep: the first ones.
pub const MAX_CASES: usize = 100;

/// A byte order mark.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The decoder's verdict on a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// The same object, written in a form that this module understands.
    Line(Vec<u8>),
    /// It is no JSON object.
    Refused,
    /// There was no memory for it.
    NoMemory,
    /// The decoder failed, for a reason that has nothing to do with the line.
    Failed,
}

/// The decoder, asked about a line that is not understood here.
pub type Decode = Box<dyn Fn(&[u8]) -> Reply + Send + Sync>;

/// What to read, and how.
pub struct Plan {
    /// The table.
    pub spec: Spec,
    /// The wanted kinds of lines; `None` for all.
    pub only: Option<Names>,
    /// Whether the first problem ends the pass.
    pub strict: bool,
    /// Limit for a line in bytes, without its LF.
    pub max_line: usize,
    /// Which instructions of the processor to use.
    pub level: Level,
    /// The decoder.
    pub decode: Decode,
}

/// Which problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Problem {
    /// A lone surrogate became U+FFFD.
    Surrogate,
    /// A value is of another type than its column, or out of its range: it became null.
    Misfit,
    /// The decoder says that a line is not a JSON object.
    Invalid,
    /// A line is over the limit.
    TooLong,
    /// A line has too many content blocks.
    TooManyBlocks,
}

/// A problem, and where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Which problem.
    pub problem: Problem,
    /// Index of the column, of a surrogate and a misfit.
    pub column: Option<usize>,
    /// Index of the source.
    pub source: usize,
    /// Bytes before the line in its file.
    pub offset: u64,
}

/// Counts of one pass over all sources.
#[derive(Debug, Default)]
pub struct Report {
    /// Bytes that were read.
    pub bytes: u64,
    /// Lines, without blank ones.
    pub lines: u64,
    /// Lines of kinds that are not wanted.
    pub skipped: u64,
    /// Rows that were made.
    pub rows: u64,
    /// Lines that the decoder was asked about.
    pub decoded: u64,
    /// Lines without a row because the decoder refused them, because they are too long, or have too many blocks.
    pub invalid: u64,
    /// By column: lone surrogates.
    pub surrogates: Vec<u64>,
    /// By column: values that did not fit.
    pub misfits: Vec<u64>,
    /// The first problems.
    pub cases: Vec<Case>,
}

impl Report {
    /// For a table with this many columns.
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

    fn add(&mut self, case: Case, times: u32) {
        let count = match (case.problem, case.column) {
            (Problem::Surrogate, Some(column)) => &mut self.surrogates[column],
            (Problem::Misfit, Some(column)) => &mut self.misfits[column],
            _ => &mut self.invalid,
        };
        *count += u64::from(times);
        // The room was reserved at the beginning.
        if self.cases.len() < MAX_CASES.min(self.cases.capacity()) {
            self.cases.push(case);
        }
    }
}

/// Why reading ended before its end.
#[derive(Debug)]
pub enum Failure {
    /// The system's error, with a source.
    Io(io::Error, usize),
    /// Something did not fit, and should have.
    Strict(Case),
    /// The decoder failed.
    Decoder,
    /// There is no memory for a line, or for its rows.
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
    /// The source being read, or the next one.
    source: usize,
    open: Option<Open>,
    buffer: Vec<u8>,
    /// Bytes of the source before the buffer.
    base: u64,
    /// Where in the buffer the next line begins.
    at: usize,
    /// The place after the last LF.
    complete: usize,
    /// Whether all lines up to there are UTF-8.
    clean: bool,
    /// The place after the bytes that were read.
    filled: usize,
    /// Whether there is no more to read of the source.
    ended: bool,
    /// Whether the bytes up to the next LF belong to a line of another range.
    skipping: bool,
}

/// Locks the counters, also after a panic: each is complete at any time.
pub fn lock(report: &Mutex<Report>) -> MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reader {
    /// A reader that begins with the first source, and counts in `report`.
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

    /// The next rows; `None` when all sources were read.
    ///
    /// # Errors
    ///
    /// See [`Failure`]. After one there are no more rows.
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
        // The columns may have room for many more rows. A copy has no spare room; without memory for a copy, the batch stays as it is.
        let left = mem::take(&mut self.rows.batch);
        let left = left.copy().unwrap_or(left);
        Ok(Some(left).filter(|batch| batch.rows > 0))
    }

    /// Advances by some lines, or by one read. Returns whether the batch is full.
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
            let room = make_room(&mut self.buffer, self.at..self.filled)?;
            self.base += self.at as u64;
            self.filled -= self.at;
            (self.at, self.complete) = (0, 0);
            let read = read(open, &mut self.buffer[self.filled..room]).map_err(failed)?;
            self.take(read)?;
        } else {
            // One byte before the range tells whether a line begins with it.
            self.base = source.start.saturating_sub(1);
            self.open = Some(source.open(self.base).map_err(failed)?);
            self.skipping = source.start > 0;
            (self.at, self.complete, self.filled) = (0, 0, 0);
        }
        Ok(false)
    }

    /// Takes bytes that were read; 0 at the end of the source.
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
            // White space, which may begin a line: so the first line still begins where the file does.
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

    fn too_long(&self, begin: usize) -> Result<(), Failure> {
        if self.base + begin as u64 >= self.sources[self.source].stop {
            return Ok(());
        }
        lock(&self.report).lines += 1;
        self.problem(Problem::TooLong, None, 1, begin)
    }

    /// Takes complete lines until there is none, or one needs the decoder or ends the pass.
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
            Stop::Odd => self.odd(),
            Stop::NoMemory => Err(Failure::NoMemory),
        }
    }

    /// Has the decoder look at a line.
    #[cold]
    fn odd(&mut self) -> Result<(), Failure> {
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
            // What the decoder writes is understood here. If it ever is not, the line is reported, not lost in silence.
            Stop::Odd => self.problem(Problem::Invalid, None, 1, begin),
            Stop::NoMemory => Err(Failure::NoMemory),
        }
    }

    fn notes(&mut self, begin: usize) -> Result<(), Failure> {
        for note in self.rows.take_notes() {
            self.problem(note.problem, note.column, note.times, begin)?;
        }
        Ok(())
    }

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

/// Moves the kept part of a buffer to its start, and makes room after it. Returns where that part ends.
fn make_room(buffer: &mut Vec<u8>, kept: Range<usize>) -> Result<usize, NoMemory> {
    let length = kept.len();
    if buffer.len() > BUFFER_BYTES && length < BUFFER_BYTES / 2 {
        let mut new = with_room(BUFFER_BYTES)?;
        new.extend_from_slice(&buffer[kept]);
        new.resize(BUFFER_BYTES, 0);
        *buffer = new;
    } else {
        buffer.copy_within(kept, 0);
    }
    // One more byte, for the LF that the last line may lack.
    if length + 1 >= buffer.len() {
        let size = (2 * buffer.len()).max(BUFFER_BYTES);
        let more = buffer.try_reserve_exact(size - buffer.len());
        more.map_err(|_| NoMemory)?;
        buffer.resize(size, 0);
    }
    Ok(buffer.len() - 1)
}

/// Where the first LF is, or the end.
fn line_end(data: &[u8]) -> usize {
    memchr::memchr(b'\n', data).unwrap_or(data.len())
}

/// Why the lines ended.
enum Stop {
    /// There are no more.
    End,
    /// The line at this place is not understood.
    Odd,
    /// Something in the line that began here did not fit.
    Noted(usize),
    /// There is no memory for the rows of the line at this place.
    NoMemory,
}

/// Makes rows of lines.
struct Lines<'a> {
    plan: &'a Plan,
    rows: &'a mut Rows,
    data: &'a [u8],
    clean: bool,
    at: usize,
    end: usize,
    path: Option<&'a [u8]>,
    base: u64,
}

impl Lines<'_> {
    /// Takes lines until there is none or one is not understood, and counts them. Lines from the decoder are counted already.
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
                    return (Stop::Odd, taken, skipped);
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
                Err(Fault::Odd) => return (Stop::Odd, taken, skipped),
                Err(Fault::NoMemory) => return (Stop::NoMemory, taken, skipped),
            };
            if end - begin > self.plan.max_line.saturating_add(1) {
                rows.batch.truncate(before);
                rows.take_notes();
                return (Stop::Odd, taken, skipped);
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
