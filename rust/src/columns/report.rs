//! What did not fit: counted, and the first cases by their places.

/// What was the matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A lone surrogate became U+FFFD.
    Surrogate,
    /// A value is of another type than its column, or out of its range: it became null.
    Misfit,
    /// A line is no JSON object, by the decoder.
    Invalid,
    /// A line is longer than may be.
    TooLong,
    /// A line has more content blocks than may be.
    TooManyBlocks,
}

/// A problem, and where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// What was the matter.
    pub problem: Problem,
    /// Index of the column, of a surrogate and a misfit.
    pub column: Option<usize>,
    /// Index of the source.
    pub source: usize,
    /// Bytes before the line in its file.
    pub offset: u64,
}

/// Cases that are kept, the first ones.
pub const MOST_CASES: usize = 100;

/// What one pass over all sources came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Bytes that were read.
    pub bytes: u64,
    /// Lines that were looked at; blank lines are none.
    pub lines: u64,
    /// Lines that are of other kinds than those wanted.
    pub skipped: u64,
    /// Rows that were made.
    pub rows: u64,
    /// Lines that went through the decoder.
    pub decoded: u64,
    /// Lines without a row because the decoder refused them, because they are too long, or have too many blocks.
    pub invalid: u64,
    /// By column: lone surrogates.
    pub surrogates: Vec<u64>,
    /// By column: values that did not fit.
    pub misfits: Vec<u64>,
    /// The first of all these.
    pub cases: Vec<Case>,
}

impl Report {
    /// One for so many columns.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self {
            surrogates: vec![0; columns],
            misfits: vec![0; columns],
            ..Self::default()
        }
    }

    /// Counts a case, `times` times.
    pub fn add(&mut self, case: Case, times: u64) {
        let counts = match case.problem {
            Problem::Surrogate => Some(&mut self.surrogates),
            Problem::Misfit => Some(&mut self.misfits),
            Problem::Invalid | Problem::TooLong | Problem::TooManyBlocks => {
                self.invalid += times;
                None
            }
        };
        let count = counts.zip(case.column);
        if let Some(count) = count.and_then(|(counts, column)| counts.get_mut(column)) {
            *count += times;
        }
        if self.cases.len() < MOST_CASES {
            self.cases.push(case);
        }
    }
}
