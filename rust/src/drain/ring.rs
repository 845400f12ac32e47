//! [`Ring`]: the last bytes of a stream, for [`Mode::KeepLast`](super::Mode::KeepLast).

use std::collections::VecDeque;

/// A buffer of at most `limit` bytes. New bytes push out the oldest.
pub struct Ring {
    bytes: VecDeque<u8>,
    limit: usize,
}

impl Ring {
    pub fn new(limit: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            limit,
        }
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends `data`, and returns how many bytes were dropped, old or new. If memory runs out while the buffer grows, it keeps as many of
    /// the last bytes as fit.
    pub fn push(&mut self, data: &[u8]) -> usize {
        let wanted = self.limit.min(self.bytes.len() + data.len());
        let _ = self.bytes.try_reserve(wanted - self.bytes.len());
        let limit = self.limit.min(self.bytes.capacity());
        let kept = &data[data.len().saturating_sub(limit)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(limit);
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
        excess + data.len() - kept.len()
    }

    /// Copies as many of the last bytes as fit to `out`, and returns how many it copied.
    pub fn copy(&self, out: &mut [u8]) -> usize {
        let len = self.bytes.len().min(out.len());
        let from = self.bytes.range(self.bytes.len() - len..);
        for (to, byte) in out.iter_mut().zip(from) {
            *to = *byte;
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::bytes_from as bytes;
    use super::*;

    #[test]
    fn a_ring_keeps_the_last_bytes() {
        for limit in [0, 1, 10, 1000] {
            let mut ring = Ring::new(limit);
            let mut all = Vec::new();
            let mut lost = 0;
            for size in [0, 1, 3, 10, 11, 400, 5, 2000, 1] {
                let data = bytes(all.len(), size);
                all.extend_from_slice(&data);
                lost += ring.push(&data);
                let mut out = vec![0; limit + 5];
                let got = ring.copy(&mut out);
                assert_eq!(got, limit.min(all.len()));
                assert_eq!(out[..got], all[all.len() - got..]);
                assert_eq!((ring.len(), lost), (got, all.len() - got));
                let few = ring.copy(&mut out[..got.min(2)]);
                assert_eq!(out[..few], all[all.len() - few..]);
            }
        }
    }
}
