//! A stream through a sieve: the steps of a [`Buffer`], with what the [`Sieve`] lets through in place of the lines.
//!
//! A line that a former chunk began and the lines after it come out as one block ([`Step::Sifted`]), so a chunk takes one
//! step, unless a line is over the limit or more is kept than a block may hold. All groups of deltas are closed
//! at the end of each step: nothing is held back.
//!
//! Where merging is to be earned ([`credit`](crate::credit)) and is not, lines go past the sieve: [`pass`] and [`follow`] take the steps of
//! the buffer itself.
//!
//! [`Buffer`]: crate::buffer::Buffer
//! [`Sieve`]: crate::sieve::Sieve
//! [`Step::Sifted`]: crate::sift::Step::Sifted
//! [`pass`]: crate::sift::pass
//! [`follow`]: crate::sift::follow

use std::collections::TryReserveError;

use crate::buffer::{self, Buffer, Place, BLOCK_BYTES, HEAD_BYTES};
use crate::sieve::Sieve;

/// What [`next`] found next in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// No line came out.
    Nothing,
    /// What the sieve let through.
    Sifted {
        /// Lines, each with its LF, in memory of the sieve.
        block: &'a [u8],
        /// Number of lines, at least 1.
        lines: usize,
        /// Where the first of them begins in the stream.
        place: Place,
        /// See [`Frame::defects`](crate::frame::Frame::defects).
        defects: u32,
    },
    /// A line that was dropped, as [`buffer::Step::TooLong`].
    TooLong {
        /// Its first bytes, at most [`HEAD_BYTES`].
        head: &'a [u8],
        /// Its whole length, without the LF.
        length: u64,
        /// Where it begins.
        place: Place,
    },
}

/// A [`Step`], and how far it took the buffer through the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next<'a> {
    /// Bytes of `data` that are done with. The next call begins after them.
    pub consumed: usize,
    /// What they were.
    pub step: Step<'a>,
}

/// Takes the next step through `data`, the rest of the caller's chunk, as [`Buffer::next`] does.
///
/// # Errors
///
/// When memory cannot be had. Lines of `data` may be lost then.
pub fn next<'a>(
    buffer: &'a mut Buffer,
    sieve: &'a mut Sieve,
    data: &'a [u8],
) -> Result<Next<'a>, TryReserveError> {
    buffer.release();
    sieve.clear();
    let mut at = buffer.skip_bom(data)?.unwrap_or(0);
    if at < data.len() && buffer.is_unfinished() {
        let Some(completed) = buffer.complete(&data[at..])? else {
            return Ok(Next {
                consumed: data.len(),
                step: Step::Nothing,
            });
        };
        at += completed.consumed;
        let mut too_long = completed.too_long;
        if too_long.is_none() {
            let kept = sieve.take(buffer.completed(), usize::MAX, completed.place);
            if kept.is_err() {
                // There is no memory for it twice: it is dropped, as if it were over the limit.
                sieve.clear();
                too_long = Some(buffer.drop_completed() as u64);
            }
        }
        if let Some(length) = too_long {
            return Ok(Next {
                consumed: at,
                step: Step::TooLong {
                    head: buffer.completed(),
                    length,
                    place: completed.place,
                },
            });
        }
        buffer.release(); // the sieve has what it wants
    }
    let taken = sieve.take(&data[at..], buffer.max_line_bytes(), buffer.place())?;
    buffer.pass(taken.bytes, taken.lines);
    at += taken.bytes;
    let full = sieve.is_full();
    sieve.finish()?;
    sieve.credit.settle();
    if sieve.block().is_empty() {
        if let Some(length) = taken.too_long {
            let place = buffer.place();
            buffer.pass(length + 1, 1);
            return Ok(Next {
                consumed: at + length + 1,
                step: Step::TooLong {
                    head: &data[at..at + length.min(HEAD_BYTES)],
                    length: length as u64,
                    place,
                },
            });
        }
    }
    // A line over the limit behind a block is found again by the next step.
    if taken.too_long.is_none() && !full {
        buffer.keep(&data[at..], false)?;
        at = data.len();
    }
    let step = match sieve.places().first() {
        None => Step::Nothing,
        Some(&place) => Step::Sifted {
            block: sieve.block(),
            lines: sieve.places().len(),
            place,
            defects: sieve.defects(),
        },
    };
    Ok(Next { consumed: at, step })
}

/// Takes the next step past a sieve, as [`Buffer::next`] does, but no further than to where merging begins. `None` if the next step is to
/// go through the sieve.
///
/// # Errors
///
/// As [`Buffer::next`].
pub fn pass<'a>(
    buffer: &'a mut Buffer,
    sieve: &mut Sieve,
    data: &'a [u8],
) -> Result<Option<buffer::Next<'a>>, TryReserveError> {
    if sieve.credit.is_merging() {
        return Ok(None);
    }
    if !sieve.places().is_empty() {
        sieve.clear();
    }
    buffer.release();
    if let Some(consumed) = buffer.skip_bom(data)? {
        let step = buffer::Step::Nothing;
        return Ok(Some(buffer::Next { consumed, step }));
    }
    if buffer.is_unfinished() {
        sieve.credit.forget();
        let next = buffer.next(data)?;
        return Ok(Some(next));
    }
    let end = plain_part(buffer, sieve, data);
    if end == 0 && !data.is_empty() {
        return Ok(None);
    }
    Ok(Some(buffer.next(&data[..end])?))
}

/// Takes the step that follows a [`Carry`](buffer::Step::Carry) of [`pass`], as [`Buffer::follow`] does. `None` as there.
///
/// # Errors
///
/// As [`Buffer::follow`].
pub fn follow<'a>(
    buffer: &mut Buffer,
    sieve: &mut Sieve,
    data: &'a [u8],
) -> Result<Option<buffer::Next<'a>>, TryReserveError> {
    let end = plain_part(buffer, sieve, data);
    if end == 0 && !data.is_empty() {
        return Ok(None);
    }
    Ok(Some(buffer.follow(&data[..end])?))
}

/// How much of `data`, which is the start of a line and goes up to the end of its chunk, goes past the sieve.
fn plain_part(buffer: &Buffer, sieve: &mut Sieve, data: &[u8]) -> usize {
    let end = sieve.credit.look(data, buffer.max_line_bytes());
    if data.len() <= BLOCK_BYTES {
        sieve.credit.forget(); // another chunk comes behind these lines
    }
    end
}

/// Ends the stream, as [`Buffer::close`] does.
///
/// # Errors
///
/// As [`Buffer::close`].
pub fn close<'a>(
    buffer: &'a mut Buffer,
    sieve: &mut Sieve,
) -> Result<buffer::Step<'a>, TryReserveError> {
    sieve.credit.restart();
    Ok(match buffer.close()? {
        buffer::Step::Carry { line, .. } if !sieve.keeps(line) => buffer::Step::Nothing,
        step => step,
    })
}
