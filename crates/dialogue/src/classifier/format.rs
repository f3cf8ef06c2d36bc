//! The stored form of a classifier.
//!
//! `TKDC`, version (u8), typical score (u32), number of classes (u16), each class (length u8, UTF-8), number of features (u32),
//! then for each feature, ascending by hash: the hash (u32), the number of entries minus one (u8), and each entry (class u8,
//! weight i8). Integers are little-endian.

use super::features::FeatureHash;
use super::{ClassWeight, Classifier};

const MAGIC: &[u8; 4] = b"TKDC";
const VERSION: u8 = 1;

/// An error in a stored classifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassifierError {
    /// The file does not start with the header of this version.
    #[error("not a classifier of version {VERSION}")]
    Unrecognised,
    /// The file ends early, or has invalid content.
    #[error("damaged classifier")]
    Damaged,
}

impl Classifier {
    /// Encodes the classifier.
    ///
    /// # Panics
    /// If the name of a class has more than 255 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        bytes.extend(self.typical_score.to_le_bytes());
        let classes = u16::try_from(self.classes.len()).expect("at most 256 classes");
        bytes.extend(classes.to_le_bytes());
        for class in &self.classes {
            bytes.push(u8::try_from(class.len()).expect("class names have at most 255 bytes"));
            bytes.extend(class.as_bytes());
        }
        let features = u32::try_from(self.hashes.len()).expect("a classifier has fewer than 2^32 features");
        bytes.extend(features.to_le_bytes());
        for hash in &self.hashes {
            let weights = self.weights_of(*hash);
            bytes.extend(hash.0.to_le_bytes());
            // There are 1 to 256 entries: at most one per class, and a feature without entries is not stored.
            bytes.push(u8::try_from(weights.len() - 1).expect("at most 256 classes"));
            for entry in weights {
                bytes.extend([entry.class, entry.weight.to_le_bytes()[0]]);
            }
        }
        bytes
    }

    /// Decodes a classifier.
    ///
    /// # Errors
    /// The bytes are not a classifier of this version, or are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ClassifierError> {
        let mut reader = Reader(bytes);
        if reader.take(4) != Ok(MAGIC) || reader.byte() != Ok(VERSION) {
            return Err(ClassifierError::Unrecognised);
        }
        let typical_score = u32::from_le_bytes(reader.array()?);
        let count = u16::from_le_bytes(reader.array()?);
        let mut classes = Vec::new();
        for _ in 0..count {
            let length = reader.byte()?;
            let name = std::str::from_utf8(reader.take(usize::from(length))?).map_err(|_| ClassifierError::Damaged)?;
            classes.push(name.to_owned());
        }
        let count = u32::from_le_bytes(reader.array()?);
        let (mut hashes, mut ends, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..count {
            let hash = FeatureHash(u32::from_le_bytes(reader.array()?));
            if hashes.last().is_some_and(|last| *last >= hash) {
                return Err(ClassifierError::Damaged);
            }
            hashes.push(hash);
            for _ in 0..=reader.byte()? {
                let [class, weight] = reader.array()?;
                if usize::from(class) >= classes.len() {
                    return Err(ClassifierError::Damaged);
                }
                let weight = i8::from_le_bytes([weight]);
                weights.push(ClassWeight { class, weight });
            }
            ends.push(u32::try_from(weights.len()).map_err(|_| ClassifierError::Damaged)?);
        }
        if !reader.0.is_empty() {
            return Err(ClassifierError::Damaged);
        }
        Ok(Self { classes, hashes, ends, weights, typical_score })
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], ClassifierError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ClassifierError::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ClassifierError> {
        Ok(self.take(N)?.try_into().expect("`take` returns N bytes"))
    }

    fn byte(&mut self) -> Result<u8, ClassifierError> {
        Ok(self.array::<1>()?[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_bytes_are_rejected() {
        let example = super::super::Example { class: 0, line: 0, tokens: vec!["a".to_owned(), "word".to_owned()] };
        let classifier = super::super::train(vec!["x".to_owned()], &[example]);
        let bytes = classifier.to_bytes();
        assert_eq!(Classifier::from_bytes(b"else"), Err(ClassifierError::Unrecognised));
        for length in 5..bytes.len() {
            assert_eq!(Classifier::from_bytes(&bytes[..length]), Err(ClassifierError::Damaged), "{length}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(Classifier::from_bytes(&longer), Err(ClassifierError::Damaged));
    }
}
