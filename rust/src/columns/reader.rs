//! Files and ranges of them, line by line, to batches.
//!
//! One buffer is used for all: a piece of 256 KiB is still in the cache when its lines are walked. A line that is longer makes it grow, until
//! that line has passed. Memory is that buffer, one batch, and what the longest line needs.
// The operations are inlined into one function per engine: only there the vector instructions may be used.
#![allow(clippy::inline_always)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, mem};

use super::batch::Batch;
use super::report::{Case, Problem, Report};
use super::rows::{Note, Place, Rows};
use super::source::{Open, Source};
use super::tables::{Spec, Table};
use crate::filter::names::Names;
use crate::kinds::scan::scan;
use crate::lines::frame::{check, check_line};
use crate::simd::{run, Engine, Level, Operation};

/// Bytes that are read at once.
pub const BUFFER_BYTES: usize = 256 * 1024;
/// A batch ends with the line that makes it so many rows, or more.
pub const BATCH_ROWS: usize = 16 * 1024;
/// A batch ends when its values have so many bytes; this is looked at once for each piece that is read.
pub const BATCH_BYTES: usize = 2 * 1024 * 1024;

/// A byte order mark.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// What the decoder made of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// The same object, written so that it is clear.
    Line(Vec<u8>),
    /// It is no JSON object.
    Refused,
    /// The decoder failed, for a reason that has nothing to do with the line.
    Failed,
}

/// What is asked of a line that is not understood here.
pub type Decode = Box<dyn Fn(&[u8]) -> Reply + Send + Sync>;

/// What is read, and what of it.
pub struct Plan {
    /// The table.
    pub table: Table,
    /// Its columns.
    pub specs: Vec<Spec>,
    /// Kinds of lines that are wanted; `None` for all.
    pub only: Option<Names>,
    /// Whether the first thing that does not fit ends it.
    pub strict: bool,
    /// Most bytes of a line, without its LF.
    pub max_line: usize,
    /// How much of the processor to use.
    pub level: Level,
    /// The decoder.
    pub decode: Decode,
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
}

/// Reads sources one after another.
#[allow(clippy::struct_excessive_bools)] // Each is a question of its own.
pub struct Reader {
    plan: Arc<Plan>,
    sources: Arc<Vec<Source>>,
    report: Arc<Mutex<Report>>,
    rows: Rows,
    /// The source that is read, or comes next.
    source: usize,
    open: Option<Open>,
    buffer: Vec<u8>,
    /// Bytes of the source before the buffer.
    base: u64,
    /// Where in the buffer the next line begins.
    at: usize,
    /// Behind the complete lines that were checked.
    checked: usize,
    /// Behind the bytes that were read.
    filled: usize,
    clean: bool,
    /// Whether a line that is too long follows those that were checked.
    long_next: bool,
    /// Whether all up to the next LF belongs to a line that is not taken.
    skipping: bool,
    ended: bool,
    done: bool,
}

/// Locks what a panic cannot have left half done: counters.
pub fn lock(report: &Mutex<Report>) -> MutexGuard<'_, Report> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reader {
    /// One that begins with the first source, and counts in `report`.
    #[must_use]
    pub fn new(plan: Arc<Plan>, sources: Arc<Vec<Source>>, report: Arc<Mutex<Report>>) -> Self {
        Self {
            rows: Rows::new(plan.table, plan.specs.clone()),
            plan,
            sources,
            report,
            source: 0,
            open: None,
            buffer: Vec::new(),
            base: 0,
            at: 0,
            checked: 0,
            filled: 0,
            clean: true,
            long_next: false,
            skipping: false,
            ended: false,
            done: false,
        }
    }

    /// The next rows; `None` when all sources were read.
    ///
    /// # Errors
    ///
    /// See [`Failure`]. After one there are no more rows.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, Failure> {
        while !self.done {
            match self.step() {
                Ok(true) => return Ok(Some(self.rows.take_batch())),
                Ok(false) => (),
                Err(failure) => {
                    self.done = true;
                    return Err(failure);
                }
            }
        }
        let left = self.rows.take_batch();
        Ok(Some(left).filter(|batch| batch.rows > 0))
    }

    /// Goes on by some lines, or by one read. Whether the batch is full.
    fn step(&mut self) -> Result<bool, Failure> {
        if self.at < self.checked {
            self.lines()?;
            return Ok(self.rows.batch.rows >= BATCH_ROWS);
        }
        if self.rows.batch.rows > 0 && self.rows.batch.bytes() >= BATCH_BYTES {
            return Ok(true);
        }
        if self.open.is_none() && !self.next_source()? {
            self.done = true;
            return Ok(false);
        }
        if self.long_next {
            self.check()?;
        } else {
            self.fill()?;
        }
        Ok(false)
    }

    fn next_source(&mut self) -> Result<bool, Failure> {
        let Some(source) = self.sources.get(self.source) else {
            return Ok(false);
        };
        let open = source
            .open()
            .map_err(|error| Failure::Io(error, self.source))?;
        self.open = Some(open);
        self.base = source.begin();
        self.skipping = source.start > 0;
        self.ended = false;
        (self.at, self.checked, self.filled) = (0, 0, 0);
        Ok(true)
    }

    fn end_source(&mut self) {
        self.open = None;
        self.long_next = false;
        self.source += 1;
        (self.at, self.checked, self.filled) = (0, 0, 0);
    }

    /// Reads on, and checks the lines that are complete then.
    fn fill(&mut self) -> Result<(), Failure> {
        let source = &self.sources[self.source];
        if self.ended || self.base + self.at as u64 >= source.stop {
            self.end_source();
            return Ok(());
        }
        self.buffer.copy_within(self.at..self.filled, 0);
        self.base += self.at as u64;
        self.filled -= self.at;
        (self.at, self.checked) = (0, 0);
        if self.buffer.len() > BUFFER_BYTES && self.filled < BUFFER_BYTES / 2 {
            self.buffer.truncate(BUFFER_BYTES);
            self.buffer.shrink_to_fit();
        }
        // There is room for the LF that a last line may lack.
        if self.filled + 1 >= self.buffer.len() {
            let length = (2 * self.buffer.len()).max(BUFFER_BYTES);
            self.buffer.resize(length, 0);
        }
        let room = self.buffer.len() - 1;
        let out = &mut self.buffer[self.filled..room];
        let open = self.open.as_mut();
        let read = open.map_or(Ok(0), |open| source.read(open, out));
        let read = read.map_err(|error| Failure::Io(error, self.source))?;
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
            return self.fill();
        }
        if begins && self.buffer.starts_with(BOM) {
            // White space, which a line may begin with. So the first line begins with the file, whatever range it is in.
            self.buffer[..BOM.len()].fill(b' ');
        }
        self.check()
    }

    /// Finds the complete lines from the place on.
    fn check(&mut self) -> Result<(), Failure> {
        let max_line = self.plan.max_line;
        loop {
            let data = &self.buffer[self.at..self.filled];
            if self.skipping {
                let Some(feed) = memchr::memchr(b'\n', data) else {
                    self.at = self.filled;
                    self.checked = self.at;
                    return Ok(());
                };
                self.skipping = false;
                self.at += feed + 1;
                self.checked = self.at;
                continue;
            }
            let frame = check(data, max_line);
            self.checked = self.at + frame.bytes;
            self.clean = frame.defects == 0;
            let too_long = frame.too_long.is_some();
            self.long_next = too_long && frame.bytes > 0;
            if frame.bytes > 0 || !too_long && data.len() <= max_line {
                return Ok(());
            }
            // Its end is found when it is skipped.
            self.skipping = true;
            if self.begins_in_range() {
                self.problem(Problem::TooLong, None, 1, self.at)?;
                lock(&self.report).lines += 1;
            }
        }
    }

    fn begins_in_range(&self) -> bool {
        self.base + (self.at as u64) < self.sources[self.source].stop
    }

    /// Takes checked lines until there is none, or something is to be done.
    fn lines(&mut self) -> Result<(), Failure> {
        let source = &self.sources[self.source];
        let left = source.stop.saturating_sub(self.base);
        let mut end = usize::try_from(left).map_or(self.checked, |left| left.min(self.checked));
        if self.at >= end {
            self.end_source();
            return Ok(());
        }
        if !self.clean {
            // Each line alone.
            let data = &self.buffer[self.at..self.checked];
            let length = memchr::memchr(b'\n', data).unwrap_or(data.len());
            let line = &data[..length];
            if line.iter().all(|byte| b" \t\r".contains(byte)) {
                self.at += length + 1;
                return Ok(());
            }
            if check_line(line, false) != 0 {
                return self.odd(length + 1);
            }
            end = self.at + length + 1;
        }
        let mut lines = Lines {
            rows: &mut self.rows,
            only: self.plan.only.as_ref(),
            data: &self.buffer[..self.filled],
            at: self.at,
            end,
            path: source.name.as_deref(),
            base: self.base,
            taken: 0,
            skipped: 0,
        };
        let rows = lines.rows.batch.rows;
        let stop = run(self.plan.level, &mut lines);
        let Lines {
            at, taken, skipped, ..
        } = lines;
        let mut report = lock(&self.report);
        report.lines += taken;
        report.skipped += skipped;
        report.rows += (self.rows.batch.rows - rows) as u64;
        drop(report);
        self.at = at;
        match stop {
            Stop::End => Ok(()),
            Stop::Noted(begin) => self.notes(begin),
            Stop::Odd => {
                let data = &self.buffer[self.at..self.checked];
                let length = memchr::memchr(b'\n', data).unwrap_or(data.len());
                self.odd(length + 1)
            }
        }
    }

    /// Has the decoder look at a line of so many bytes, its LF included.
    #[cold]
    fn odd(&mut self, length: usize) -> Result<(), Failure> {
        let begin = self.at;
        let line = &self.buffer[begin..begin + length - 1];
        let bare = line.strip_suffix(b"\r").unwrap_or(line);
        let reply = (self.plan.decode)(bare);
        self.at += length;
        let mut report = lock(&self.report);
        report.lines += 1;
        report.decoded += 1;
        drop(report);
        match reply {
            Reply::Failed => Err(Failure::Decoder),
            Reply::Refused => self.problem(Problem::Invalid, None, 1, begin),
            Reply::Line(mut line) => {
                line.push(b'\n');
                let mut lines = Lines {
                    rows: &mut self.rows,
                    only: self.plan.only.as_ref(),
                    data: &line,
                    at: 0,
                    end: line.len(),
                    path: self.sources[self.source].name.as_deref(),
                    base: self.base + begin as u64,
                    taken: 0,
                    skipped: 0,
                };
                let rows = lines.rows.batch.rows;
                let stop = run(self.plan.level, &mut lines);
                let skipped = lines.skipped;
                let mut report = lock(&self.report);
                report.skipped += skipped;
                report.rows += (self.rows.batch.rows - rows) as u64;
                drop(report);
                match stop {
                    Stop::End => Ok(()),
                    Stop::Noted(_) => self.notes(begin),
                    // What the decoder writes is clear. If it ever is not, the line is told and not lost without a word.
                    Stop::Odd => self.problem(Problem::Invalid, None, 1, begin),
                }
            }
        }
    }

    fn notes(&mut self, begin: usize) -> Result<(), Failure> {
        for Note {
            problem,
            column,
            times,
        } in mem::take(&mut self.rows.notes)
        {
            self.problem(problem, column, times, begin)?;
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
        lock(&self.report).add(case, times.into());
        if self.plan.strict {
            return Err(Failure::Strict(case));
        }
        Ok(())
    }
}

/// Why some lines were left for later.
enum Stop {
    /// There are no more.
    End,
    /// The line at the place is not understood.
    Odd,
    /// Something in the line that began here did not fit.
    Noted(usize),
}

/// Makes rows of clean lines.
struct Lines<'a> {
    rows: &'a mut Rows,
    only: Option<&'a Names>,
    data: &'a [u8],
    at: usize,
    end: usize,
    path: Option<&'a [u8]>,
    base: u64,
    taken: u64,
    skipped: u64,
}

impl Operation for &mut Lines<'_> {
    type Output = Stop;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Stop {
        while self.at < self.end && self.rows.batch.rows < BATCH_ROWS {
            let begin = self.at;
            if let Some(only) = self.only {
                let found = scan(engine, self.data, begin);
                if !only.want(self.data, &found.kind) {
                    self.at = found.end;
                    self.taken += 1;
                    self.skipped += 1;
                    continue;
                }
            }
            let place = Place {
                path: self.path,
                offset: self.base + begin as u64,
            };
            let Ok(end) = self.rows.add(engine, self.data, begin, place) else {
                return Stop::Odd;
            };
            self.at = end;
            self.taken += 1;
            if !self.rows.notes.is_empty() {
                return Stop::Noted(begin);
            }
        }
        Stop::End
    }
}

#[cfg(test)]
mod tests;
