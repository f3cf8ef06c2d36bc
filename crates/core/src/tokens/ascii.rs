//! The approximate count for ASCII text, processed in blocks of 64 bytes.
//!
//! For each kind of byte, a `u64` has a bit for each byte of the block: the lowest bit is for the first byte. The bits of the previous
//! block are kept, because runs can cross blocks.

/// Bytes in a block.
const BLOCK: usize = 64;
/// Bytes that are classified together.
const LANES: usize = 8;

/// Counts tokens, by the rule of [`super::ApproximateCounter`].
pub(super) fn count(text: &[u8]) -> u64 {
    let (mut letters, mut digits, mut spaces_before) = (Runs::<4>::default(), Runs::<3>::default(), 0);
    let counts = text.chunks(BLOCK).map(|block| {
        let Kinds { letters: in_words, digits: in_numbers, spaces } = Kinds::of(block);
        // The first space of a run is not counted.
        let further_spaces = (spaces & (spaces << 1 | spaces_before >> 63)).count_ones();
        spaces_before = spaces;
        let others = block.len() as u32 - (in_words | in_numbers | spaces).count_ones();
        u64::from(letters.count(in_words) + digits.count(in_numbers) + further_spaces + others)
    });
    counts.sum()
}

/// Counts the tokens of runs of one kind: one token per `EVERY` bytes, rounded up.
#[derive(Default)]
struct Runs<const EVERY: u32> {
    /// The bytes of this kind in the previous block.
    members: u64,
    /// The bytes of this kind in the previous block that begin a token.
    begins: u64,
}

impl<const EVERY: u32> Runs<EVERY> {
    /// Counts the tokens that begin in a block.
    fn count(&mut self, members: u64) -> u32 {
        let before = |distance: u32| members << distance | self.members >> (64 - distance);
        let mut begins = members & !before(1);
        // The bytes whose previous `EVERY` bytes belong to the same run.
        let continued = (1..=EVERY).fold(members, |continued, distance| continued & before(distance));
        let mut next = (begins << EVERY | self.begins >> (64 - EVERY)) & continued;
        while next != 0 {
            begins |= next;
            next = next << EVERY & continued;
        }
        *self = Self { members, begins };
        begins.count_ones()
    }
}

/// The bytes of each kind in a block.
struct Kinds {
    letters: u64,
    digits: u64,
    spaces: u64,
}

impl Kinds {
    fn of(block: &[u8]) -> Self {
        let mut padded = [0; BLOCK];
        let block = block.try_into().unwrap_or_else(|_| {
            padded[..block.len()].copy_from_slice(block);
            &padded
        });
        let mut kinds = Self { letters: 0, digits: 0, spaces: 0 };
        // From the last bytes to the first, because each step shifts the earlier results up.
        for lanes in block.as_chunks::<LANES>().0.iter().rev() {
            let lanes = u64::from_le_bytes(*lanes);
            let lower = lanes | repeat_byte(b' ');
            kinds.letters =
                kinds.letters << LANES | collect_high_bits(at_least(lower, b'a') & !at_least(lower, b'z' + 1));
            kinds.digits =
                kinds.digits << LANES | collect_high_bits(at_least(lanes, b'0') & !at_least(lanes, b'9' + 1));
            kinds.spaces =
                kinds.spaces << LANES | collect_high_bits(at_least(lanes, b' ') & !at_least(lanes, b' ' + 1));
        }
        kinds
    }
}

const fn repeat_byte(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; LANES])
}

/// Sets the highest bit of each byte that is at least `byte`. In ASCII bytes this bit is 0, so the addition does not overflow into
/// the next byte.
const fn at_least(lanes: u64, byte: u8) -> u64 {
    lanes + repeat_byte(0x80 - byte)
}

/// Collects the highest bit of each byte. The bit of the first byte becomes the lowest bit.
const fn collect_high_bits(lanes: u64) -> u64 {
    ((lanes & repeat_byte(0x80)) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}
