//! Caches the token counts of short pieces (words with their leading space) per thread.

use std::cell::RefCell;

use bpe_openai::Tokenizer;

/// The number of cached pieces per thread and table. Takes 128 KiB.
const SLOTS: usize = 8_192;
/// The maximum length of a cached piece. Longer pieces are rare.
const PIECE_BYTES: usize = 14;

/// A piece and its token count. An empty slot is all zeros.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Slot {
    /// The bytes of the piece padded with zeros, and its length in the last byte. Distinct pieces have distinct values.
    piece: u128,
    tokens: u8,
}

const EMPTY: Slot = Slot { piece: 0, tokens: 0 };

/// A direct-mapped cache of the counts of one table. A new piece replaces the previous piece in its slot.
pub(crate) struct PieceCache(RefCell<Vec<Slot>>);

impl PieceCache {
    pub(crate) const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Counts the tokens of the text. All calls on a cache must use the same tokenizer.
    pub(crate) fn count(&self, tokenizer: &Tokenizer, text: &str) -> usize {
        let mut slots = self.0.borrow_mut();
        slots.resize(SLOTS, EMPTY);
        tokenizer.split(text).map(|piece| count_piece(&mut slots, tokenizer, piece.as_bytes())).sum()
    }
}

fn count_piece(slots: &mut [Slot], tokenizer: &Tokenizer, piece: &[u8]) -> usize {
    let count = || tokenizer.bpe.count(piece);
    let Some(packed) = pack(piece) else { return count() };
    let slot = &mut slots[slot_index(packed)];
    if slot.piece != packed {
        // Cannot overflow: a piece has at most as many tokens as bytes.
        *slot = Slot { piece: packed, tokens: count() as u8 };
    }
    usize::from(slot.tokens)
}

fn pack(piece: &[u8]) -> Option<u128> {
    let mut bytes = [0; 16];
    bytes.get_mut(..PIECE_BYTES)?.get_mut(..piece.len())?.copy_from_slice(piece);
    bytes[15] = piece.len() as u8;
    Some(u128::from_le_bytes(bytes))
}

/// Multiplies, because the upper bits of the product depend on every byte of the piece.
fn slot_index(packed: u128) -> usize {
    let mixed = (packed as u64 ^ ((packed >> 64) as u64).rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - SLOTS.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_counts_match_the_tokenizer() {
        let tokenizer = bpe_openai::cl100k_base();
        let cache = PieceCache::new();
        let words = (0..40_000_u32).map(|number| format!(" w{}é{}", number % 7_000, number % 13));
        let text: String = words.chain(["\0".to_owned(), "\0\0".to_owned(), "x".repeat(100)]).collect();
        for part in text.as_bytes().chunks(1_000) {
            let part = String::from_utf8_lossy(part);
            for _ in 0..2 {
                assert_eq!(cache.count(tokenizer, &part), tokenizer.count(part.as_ref()), "{part}");
            }
        }
    }

    #[test]
    fn distinct_pieces_pack_to_distinct_keys() {
        let pieces: [&[u8]; 5] = [b"\0", b"\0\0", b"a", b"a\0", b"fourteen bytes"];
        let mut packed: Vec<u128> = pieces.iter().map(|piece| pack(piece).unwrap()).collect();
        packed.sort_unstable();
        packed.dedup();
        assert_eq!(packed.len(), pieces.len());
        assert!(packed.iter().all(|packed| *packed != EMPTY.piece));
        assert_eq!(pack(b"fifteen bytes !"), None);
    }
}
