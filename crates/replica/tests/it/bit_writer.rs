//! Numbers packed from the lowest bit of each byte upwards, as docs/format-index.md has them.

/// Bits that are added up to bytes.
#[derive(Debug, Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    /// Of the last byte so many are used; 0 if all of them are.
    bits: u32,
}

impl BitWriter {
    pub(crate) fn push(&mut self, number: u64, width: u32) {
        let (mut left, mut rest) = (width, number);
        while left > 0 {
            let at = self.bits;
            if at == 0 {
                self.bytes.push(0);
            }
            let taken = left.min(8 - at);
            *self.bytes.last_mut().unwrap() |= ((rest & ((1 << taken) - 1)) as u8) << at;
            rest >>= taken;
            left -= taken;
            self.bits = (at + taken) % 8;
        }
    }

    pub(crate) fn push_all(&mut self, numbers: impl Iterator<Item = u64>, width: u32) {
        for number in numbers {
            self.push(number, width);
        }
    }

    /// Ones at the quotients of distances that come in order, each as many bits further as there were ones
    /// before it, among so many zeros.
    pub(crate) fn push_unary(&mut self, quotients: impl Iterator<Item = u64>, zero_count: u64) {
        let mut zeros = 0;
        for quotient in quotients {
            for _ in zeros..quotient {
                self.push(0, 1);
            }
            zeros = quotient;
            self.push(1, 1);
        }
        for _ in zeros..zero_count {
            self.push(0, 1);
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The checksum of a bucket, which begins with its number.
pub(crate) fn bucket_checksum(number: u64, body: &[u8]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new_with_initial(number as u32);
    hasher.update(body);
    hasher.finalize().to_le_bytes()
}
