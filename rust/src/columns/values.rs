//! Converts JSON values to text, numbers and times, and checks each of their bytes.
// Every operation must be inlined into one function per engine: the compiler emits vector instructions only in this function.
#![allow(clippy::inline_always)]

use super::walk::{Form, Value};
use crate::fallible::{append, push, reserve, NoMemory};
use crate::kinds::cursor::{ends_word, space};
use crate::simd::{escape_len, Engine, Operation};

/// Why this module cannot make a row of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The line is invalid JSON, or this module does not understand it. The decoder must read it.
    Unclear,
    /// Memory ran out for the line's values.
    NoMemory,
}

impl From<NoMemory> for Fault {
    fn from(NoMemory: NoMemory) -> Self {
        Self::NoMemory
    }
}

/// U+FFFD, which replaces half of a surrogate pair, because UTF-8 cannot express one.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Decodes the escapes of a string and appends its text to `out`. Returns how many lone surrogates it replaced by U+FFFD.
///
/// # Errors
///
/// [`Fault::Unclear`] for a control byte or an invalid escape, or [`Fault::NoMemory`]. `out` may then contain a part of the text.
#[inline(always)]
pub fn text<E: Engine>(
    engine: E,
    data: &[u8],
    value: Value,
    out: &mut Vec<u8>,
) -> Result<u32, Fault> {
    if value.form == Form::Plain {
        // The search for a special byte ends at the closing quote, unless there is a control byte before it.
        if engine.special(data, value.start) != value.end {
            return Err(Fault::Unclear);
        }
        append(out, value.of(data))?;
        return Ok(0);
    }
    engine.call(Unescape(value.of(data), out))
}

/// The [`Operation`] that appends a string with escapes to a vector.
struct Unescape<'a>(&'a [u8], &'a mut Vec<u8>);

impl Operation for Unescape<'_> {
    type Output = Result<u32, Fault>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        unescape(engine, self.0, self.1)
    }
}

#[inline(always)]
fn unescape<E: Engine>(engine: E, raw: &[u8], out: &mut Vec<u8>) -> Result<u32, Fault> {
    // A string is never longer than its escaped form, so the writes below do not allocate.
    reserve(out, raw.len())?;
    let (mut at, mut replaced) = (0, 0);
    loop {
        let end = engine.special(raw, at);
        out.extend_from_slice(&raw[at..end]);
        if end == raw.len() {
            return Ok(replaced);
        }
        let length = match raw[end] {
            b'\\' => escape_len(raw, end).ok_or(Fault::Unclear)?,
            _ => return Err(Fault::Unclear),
        };
        at = end + length;
        match raw[end + 1] {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(10),
            b'r' => out.push(13),
            b't' => out.push(9),
            b'u' => {
                let unit = hex(raw, end);
                if let Some(character) = char::from_u32(unit) {
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    continue;
                }
                let follows = raw[at..].starts_with(b"\\u") && escape_len(raw, at).is_some();
                let low = if follows { hex(raw, at) } else { 0 };
                if unit < 0xdc00 && (0xdc00..0xe000).contains(&low) {
                    let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                    let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    at += 6;
                } else {
                    out.extend_from_slice(REPLACEMENT);
                    replaced += 1;
                }
            }
            byte => out.push(byte),
        }
    }
}

/// Returns the code unit of the escape `\uXXXX` at `at`, which is valid.
fn hex(raw: &[u8], at: usize) -> u32 {
    raw[at + 2..at + 6].iter().fold(0, |code, &digit| {
        code << 4 | char::from(digit).to_digit(16).unwrap_or(0)
    })
}

/// A JSON value that is not a string, an object or an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Word {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number: as an integer if its value is whole (like `1.0`) and fits 64 bits, and as a float.
    Number(Option<i64>, f64),
}

/// Parses a word: `null`, `true`, `false` or a number.
///
/// # Errors
///
/// [`Fault::Unclear`] if it is not valid JSON, or if it is a number with a fraction or an exponent that is too large for a float. The
/// decoder also refuses such a number.
pub fn word(word: &[u8]) -> Result<Word, Fault> {
    match word {
        b"null" => return Ok(Word::Null),
        b"true" => return Ok(Word::Bool(true)),
        b"false" => return Ok(Word::Bool(false)),
        _ => (),
    }
    let digits = |from: usize| {
        word[from..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    };
    let sign = usize::from(word.first() == Some(&b'-'));
    let whole = digits(sign);
    let mut at = sign + whole;
    if whole == 0 || whole > 1 && word[sign] == b'0' {
        return Err(Fault::Unclear);
    }
    let is_whole = at == word.len();
    if word.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return Err(Fault::Unclear);
        }
        at += 1 + fraction;
    }
    if let Some(b'e' | b'E') = word.get(at) {
        at += 1 + usize::from(matches!(word.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at.min(word.len()));
        if exponent == 0 {
            return Err(Fault::Unclear);
        }
        at += exponent;
    }
    if at != word.len() {
        return Err(Fault::Unclear);
    }
    if is_whole && whole <= 18 {
        // 18 digits always fit 64 bits.
        let number = decimal(&word[sign..]).ok_or(Fault::Unclear)? * if sign == 0 { 1 } else { -1 };
        #[allow(clippy::cast_precision_loss)] // The cast rounds in the same way as a parser does.
        return Ok(Word::Number(Some(number), number as f64));
    }
    let text = std::str::from_utf8(word).map_err(|_| Fault::Unclear)?;
    let float: f64 = text.parse().map_err(|_| Fault::Unclear)?;
    if is_whole {
        return Ok(Word::Number(text.parse().ok(), float));
    }
    #[allow(clippy::cast_possible_truncation)] // The result is used only below 2^53.
    let number = float as i64;
    let fits = float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0;
    if float.is_finite() {
        Ok(Word::Number(fits.then_some(number), float))
    } else {
        Err(Fault::Unclear)
    }
}

/// Parses an ISO 8601 time, and returns the microseconds since 1970; `None` if the time is invalid.
///
/// Accepts a date, optionally followed by `T` or a space and a time: `2026-01-31`, `2026-01-31T12:30`, `2026-01-31 12:30:00.5Z`,
/// `2026-01-31T12:30:00+01:00`. Without an offset the time is in UTC. Digits after the microseconds are dropped.
#[must_use]
pub fn timestamp(text: &[u8]) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    if date[4] != b'-' || date[7] != b'-' {
        return None;
    }
    let (year, month, day) = (
        decimal(&date[..4])?,
        decimal(&date[5..7])?,
        decimal(&date[8..])?,
    );
    if year == 0 || !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
        return None;
    }
    let midnight = days_before(year, month, day) * 86_400_000_000;
    let Some((separator, rest)) = rest.split_first() else {
        return Some(midnight);
    };
    if !matches!(separator, b'T' | b't' | b' ') || rest.get(2) != Some(&b':') {
        return None;
    }
    let (hour, minute) = (decimal(&rest[..2])?, decimal(rest.get(3..5)?)?);
    let (mut second, mut micros, mut rest) = (0, 0, &rest[5..]);
    if rest.first() == Some(&b':') {
        second = decimal(rest.get(1..3)?)?;
        rest = &rest[3..];
        if let Some(b'.' | b',') = rest.first() {
            let digits = rest[1..].iter().take_while(|it| it.is_ascii_digit());
            let count = digits.count();
            if count == 0 {
                return None;
            }
            let kept = count.min(6);
            micros = decimal(&rest[1..=kept])? * [1, 100_000, 10_000, 1_000, 100, 10, 1][kept];
            rest = &rest[1 + count..];
        }
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = (hour * 60 + minute) * 60 + second - offset(rest)? * 60;
    Some(midnight + seconds * 1_000_000 + micros)
}

/// Parses the offset after a time (`Z`, `+01`, `+0100`, `+01:00` or nothing) and returns it in minutes east of UTC.
fn offset(text: &[u8]) -> Option<i64> {
    let sign = match text.first() {
        None => return Some(0),
        Some(b'Z' | b'z') => return (text.len() == 1).then_some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) => return None,
    };
    let (hours, minutes) = match text[1..] {
        [a, b] => ([a, b], *b"00"),
        [a, b, b':', c, d] | [a, b, c, d] => ([a, b], [c, d]),
        _ => return None,
    };
    let (hours, minutes) = (decimal(&hours)?, decimal(&minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// Parses decimal digits; `None` if a byte is not a digit.
fn decimal(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        Some(number * 10 + digit)
    })
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the number of days from 1970-01-01 to a date.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    // Count years from March to February, so that a leap day is the last day of its year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// Returns `data` if it is one valid JSON value.
///
/// # Errors
///
/// [`Fault::Unclear`] if it is not, or [`Fault::NoMemory`] if memory runs out for the stack of open brackets.
#[inline(always)]
pub fn json<E: Engine>(engine: E, data: &[u8]) -> Result<&[u8], Fault> {
    engine.call(IsJson(data)).map(|()| data)
}

/// The [`Operation`] of [`json`].
struct IsJson<'a>(&'a [u8]);

impl Operation for IsJson<'_> {
    type Output = Result<(), Fault>;

    #[inline(always)]
    fn run<E: Engine>(self, engine: E) -> Self::Output {
        is_json(engine, self.0)
    }
}

#[inline(always)]
fn is_json<E: Engine>(engine: E, data: &[u8]) -> Result<(), Fault> {
    let mut open = Vec::new();
    let mut at = 0;
    loop {
        at = space(data, at);
        match *data.get(at).ok_or(Fault::Unclear)? {
            b'"' => {
                let (end, _) = engine.valid_end(data, at + 1).ok_or(Fault::Unclear)?;
                at = end + 1;
            }
            begin @ (b'{' | b'[') => {
                let end = if begin == b'{' { b'}' } else { b']' };
                at = space(data, at + 1);
                if data.get(at) == Some(&end) {
                    at += 1;
                } else {
                    push(&mut open, end)?;
                    if end == b'}' {
                        at = key(engine, data, at).ok_or(Fault::Unclear)?;
                    }
                    continue;
                }
            }
            _ => {
                let rest = &data[at..];
                let length = rest.iter().position(|&byte| ends_word(byte));
                let length = length.unwrap_or(rest.len());
                word(&rest[..length])?;
                at += length;
            }
        }
        loop {
            at = space(data, at);
            match (open.last(), data.get(at)) {
                (None, None) => return Ok(()),
                (Some(&end), Some(b',')) => {
                    at += 1;
                    if end == b'}' {
                        at = key(engine, data, at).ok_or(Fault::Unclear)?;
                    }
                    break;
                }
                (Some(end), Some(byte)) if end == byte => {
                    open.pop();
                    at += 1;
                }
                _ => return Err(Fault::Unclear),
            }
        }
    }
}

/// Returns the index after the key at `at` and its colon; `None` if they are invalid.
#[inline(always)]
fn key<E: Engine>(engine: E, data: &[u8], at: usize) -> Option<usize> {
    let at = space(data, at);
    if data.get(at) != Some(&b'"') {
        return None;
    }
    let (end, _) = engine.valid_end(data, at + 1)?;
    let at = space(data, end + 1);
    (data.get(at) == Some(&b':')).then_some(at + 1)
}

#[cfg(test)]
mod tests;
