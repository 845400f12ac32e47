//! Reads numbers.

/// A JSON number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A number without a fraction or an exponent.
    Int(i64),
    /// A number with a fraction or an exponent.
    Float(f64),
}

/// The maximum number of digits in a whole number. More digits may not fit 64 bits.
const MAX_DIGITS: usize = 18;

/// Returns the number that begins at `at`, and the index after it. Returns `None` if there is no valid number, and for numbers that msgspec
/// must read: -0, because only a float can be -0; numbers with more than [`MAX_DIGITS`] digits; and numbers beyond the range of a float.
#[inline]
pub fn number(data: &[u8], at: usize) -> Option<(Number, usize)> {
    // Most numbers in a result message have one digit.
    if let (Some(digit), Some(b',' | b'}')) = (digit(data, at), data.get(at + 1)) {
        return Some((Number::Int(digit.into()), at + 1));
    }
    long_number(data, at)
}

fn long_number(data: &[u8], at: usize) -> Option<(Number, usize)> {
    let negative = data.get(at) == Some(&b'-');
    let first = at + usize::from(negative);
    let mut value: i64 = 0;
    let mut end = first;
    while let Some(digit) = digit(data, end) {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        end += 1;
    }
    let digits = end - first;
    if digits == 0 || digits > MAX_DIGITS || (digits > 1 && data[first] == b'0') {
        return None;
    }
    if matches!(data.get(end), Some(b'.' | b'e' | b'E')) {
        return float(data, at, end);
    }
    match (negative, value) {
        (true, 0) => None,
        (true, _) => Some((Number::Int(-value), end)),
        (false, _) => Some((Number::Int(value), end)),
    }
}

fn digit(data: &[u8], at: usize) -> Option<u8> {
    data.get(at)
        .map(|byte| byte.wrapping_sub(b'0'))
        .filter(|&digit| digit < 10)
}

fn digits(data: &[u8], at: usize) -> usize {
    let mut end = at;
    while digit(data, end).is_some() {
        end += 1;
    }
    end
}

/// Returns the number that begins at `at`. Its digits before the point or exponent end at `end`.
fn float(data: &[u8], at: usize, mut end: usize) -> Option<(Number, usize)> {
    if data[end] == b'.' {
        let first = end + 1;
        end = digits(data, first);
        if end == first {
            return None;
        }
    }
    if matches!(data.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(data.get(end + 1), Some(b'+' | b'-')));
        let first = end + 1 + sign;
        end = digits(data, first);
        if end == first {
            return None;
        }
    }
    let value: f64 = std::str::from_utf8(&data[at..end]).ok()?.parse().ok()?;
    value.is_finite().then_some((Number::Float(value), end))
}
