//! The tables by which [`Avx2`](super::avx2::Avx2) decodes UTF-8, up to four characters in a step.
//!
//! The basic idea is simple: a shuffle moves the bytes of the next characters into four lanes of 32 bits, the last byte of each character
//! first. A few operations on all lanes then remove the marks of UTF-8 and join the other bits. For `aé日b`:
//!
//! ```text
//! bytes       61 c3 a9 e6 97 a5 62
//! lanes       00000061  0000c3a9  00e697a5  00000062
//! characters  00000061  000000e9  000065e5  00000062
//! ```
//!
//! A mask with one bit for each of the next 12 bytes says where the characters end. It chooses the shuffle from a table, so no branch depends
//! on the lengths of the characters.

/// The number of bytes that the mask of a step describes.
pub const WINDOW: usize = 12;
/// The maximum number of characters that a step decodes.
const LANES: usize = 4;

/// One step of decoding: the index of its shuffle in [`SHUFFLES`], and how many bytes and characters it decodes.
#[derive(Clone, Copy)]
pub struct Step {
    pub shuffle: u16,
    pub bytes: u8,
    pub characters: u8,
}

/// The number of different lengths of a character in bytes, including 0 for a lane without a character.
const LENGTHS: usize = 5;
const COMBINATIONS: usize = LENGTHS * LENGTHS * LENGTHS * LENGTHS;

/// The step for each mask of [`WINDOW`] bytes. The bit of a character's last byte is set.
pub static STEPS: [Step; 1 << WINDOW] = {
    let none = Step {
        shuffle: 0,
        bytes: 0,
        characters: 0,
    };
    let mut steps = [none; 1 << WINDOW];
    let mut mask = 0;
    while mask < steps.len() {
        // Change a copy: a mutable reference to the step in the table would need Rust 1.83 here.
        let mut step = none;
        let (mut at, mut unit) = (0, 1);
        while at < WINDOW && (step.characters as usize) < LANES {
            if mask >> at & 1 == 1 {
                let len = at + 1 - step.bytes as usize;
                if len >= LENGTHS {
                    break; // No UTF-8 has this mask.
                }
                #[allow(clippy::cast_possible_truncation)] // There are 625 combinations.
                let shuffle = (len * unit) as u16;
                step.shuffle += shuffle;
                #[allow(clippy::cast_possible_truncation)] // There are 12 bytes.
                let bytes = (at + 1) as u8;
                step.bytes = bytes;
                step.characters += 1;
                unit *= LENGTHS;
            }
            at += 1;
        }
        steps[mask] = step;
        mask += 1;
    }
    steps
};

/// The shuffle for each combination of the lengths of four characters: the first length is the lowest digit of the index.
pub static SHUFFLES: [[u8; 4 * LANES]; COMBINATIONS] = {
    /// A lane gets a zero for this index.
    const ZERO: u8 = 0x80;
    let mut shuffles = [[ZERO; 4 * LANES]; COMBINATIONS];
    let mut index = 0;
    while index < COMBINATIONS {
        let (mut lengths, mut lane, mut end) = (index, 0, 0);
        while lane < LANES {
            let len = lengths % LENGTHS;
            end += len;
            let mut byte = 0;
            while byte < len {
                #[allow(clippy::cast_possible_truncation)] // There are at most 16 bytes.
                let from = (end - 1 - byte) as u8;
                shuffles[index][4 * lane + byte] = from;
                byte += 1;
            }
            lengths /= LENGTHS;
            lane += 1;
        }
        index += 1;
    }
    shuffles
};
