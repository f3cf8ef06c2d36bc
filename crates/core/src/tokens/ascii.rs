//! The approximate count of text that is ASCII alone, 64 bytes at a time.
//!
//! Each kind of byte is a word with a bit for each byte of the block, the lowest for the first. What crosses from one block into
//! the next is carried as the bits of the block before.

/// Bytes of a block.
const BLOCK: usize = 64;
/// Bytes that are sorted at once.
const LANES: usize = 8;

/// Counts tokens, by the rule of [`super::ApproximateCounter`].
pub(super) fn count(text: &[u8]) -> u64 {
    let (mut letters, mut digits, mut spaces_before) = (Runs::<4>::default(), Runs::<3>::default(), 0);
    let counts = text.chunks(BLOCK).map(|block| {
        let Kinds { letters: in_words, digits: in_numbers, spaces } = Kinds::of(block);
        // The first of a run of spaces counts nothing.
        let further_spaces = (spaces & (spaces << 1 | spaces_before >> 63)).count_ones();
        spaces_before = spaces;
        let others = block.len() as u32 - (in_words | in_numbers | spaces).count_ones();
        u64::from(letters.count(in_words) + digits.count(in_numbers) + further_spaces + others)
    });
    counts.sum()
}

/// Runs of one kind that count a token for every so many bytes begun.
#[derive(Default)]
struct Runs<const EVERY: u32> {
    /// The bytes of this kind in the block before.
    members: u64,
    /// Those among them that begin a token.
    begins: u64,
}

impl<const EVERY: u32> Runs<EVERY> {
    /// Counts the tokens that begin in a block.
    fn count(&mut self, members: u64) -> u32 {
        let before = |distance: u32| members << distance | self.members >> (64 - distance);
        let mut begins = members & !before(1);
        // Where a run has gone on since the place at which another token may have begun.
        let goes_on = (1..=EVERY).fold(members, |goes_on, distance| goes_on & before(distance));
        let mut next = (begins << EVERY | self.begins >> (64 - EVERY)) & goes_on;
        while next != 0 {
            begins |= next;
            next = next << EVERY & goes_on;
        }
        *self = Self { members, begins };
        begins.count_ones()
    }
}

/// Which bytes of a block are of which kind.
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
        // From the last lanes to the first, as each makes room for the next.
        for lanes in block.as_chunks::<LANES>().0.iter().rev() {
            let lanes = u64::from_le_bytes(*lanes);
            let lower = lanes | each(b' ');
            kinds.letters = kinds.letters << LANES | bits(at_least(lower, b'a') & !at_least(lower, b'z' + 1));
            kinds.digits = kinds.digits << LANES | bits(at_least(lanes, b'0') & !at_least(lanes, b'9' + 1));
            kinds.spaces = kinds.spaces << LANES | bits(at_least(lanes, b' ') & !at_least(lanes, b' ' + 1));
        }
        kinds
    }
}

const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; LANES])
}

/// Sets the highest bit of each byte that is at least this one. Bytes of ASCII have it free, and none overflows into the next.
const fn at_least(lanes: u64, byte: u8) -> u64 {
    lanes + each(0x80 - byte)
}

/// Gathers the highest bit of each byte, that of the first byte as the lowest.
const fn bits(lanes: u64) -> u64 {
    ((lanes & each(0x80)) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}
