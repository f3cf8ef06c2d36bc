//! Arguments of the functions in `library.lua` and `index.lua`.

use std::io::Write as _;

/// The arguments of a function, one after the other in one buffer.
#[derive(Clone, Default)]
pub(crate) struct Args {
    bytes: Vec<u8>,
    /// Where each argument ends.
    ends: Vec<usize>,
}

impl Args {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn add(&mut self, arg: impl AsRef<[u8]>) -> &mut Self {
        self.bytes.extend_from_slice(arg.as_ref());
        self.ends.push(self.bytes.len());
        self
    }

    pub(crate) fn with(mut self, arg: impl AsRef<[u8]>) -> Self {
        self.add(arg);
        self
    }

    pub(crate) fn number(&mut self, number: impl std::fmt::Display) -> &mut Self {
        // Writing to a vector does not fail.
        let _ = write!(self.bytes, "{number}");
        self.ends.push(self.bytes.len());
        self
    }

    /// Adds a list, preceded by its length.
    pub(crate) fn list<T: AsRef<[u8]>>(&mut self, list: impl IntoIterator<Item = T>) -> &mut Self {
        let list: Vec<T> = list.into_iter().collect();
        self.number(list.len());
        for arg in list {
            self.add(arg);
        }
        self
    }

    pub(crate) fn append(&mut self, other: &Self) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| start + end));
    }

    /// The number of arguments.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The number of bytes of all arguments.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }
}
