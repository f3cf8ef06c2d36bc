use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use threadkeep_core::StoreError;

use crate::Format;

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file cannot be opened. Name another, or mend its rights.
    #[error("{} cannot be opened", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file was opened and cannot be read.
    #[error("the file cannot be read")]
    Read(#[source] io::Error),
    /// There is nothing in the file.
    #[error("the file is empty")]
    Empty,
    /// The file is none of the known formats. Convert it, or name its format where it is damaged at its beginning.
    #[error("not a known conversation format: found {saw}; known are {}", Format::list())]
    Unrecognised {
        /// What is there instead; names of members at most, no words of a conversation.
        saw: String,
    },
    /// The export was written by a later version of Threadkeep. Read it with that one.
    #[error("this export has version {version}, and this program reads versions up to {known}")]
    LaterVersion {
        /// The export's version.
        version: u64,
        /// The latest version that is understood.
        known: u32,
    },
    /// No format is called so.
    #[error("there is no format `{name}`; known are {}", Format::list())]
    UnknownName {
        /// The name.
        name: String,
    },
}

impl From<io::Error> for FormatError {
    fn from(error: io::Error) -> Self {
        match Fault::from(error) {
            Fault::Io(error) => Self::Read(error),
            Fault::Record(saw) | Fault::File(saw) => Self::Unrecognised { saw },
        }
    }
}

/// A record that was not read, and where it is.
///
/// The text tells what is wrong with the record and the conversation's id, never its title or what a message says.
#[derive(Debug)]
pub struct RecordError {
    /// The line on which the record starts; the first is 1.
    pub line: u64,
    /// The record's place in the file; the first is 0.
    pub record: u64,
    /// The conversation that it is or belongs to, as far as its name can be read.
    pub conversation: ConversationName,
    /// What is wrong.
    pub fault: Fault,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(id) = &self.conversation.id {
            write!(f, ", conversation {id}")?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl Error for RecordError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // The fault's own words are told already.
        self.fault.source()
    }
}

/// What a conversation is called in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationName {
    /// Its title: somebody's words, which belong into no log.
    pub title: Option<String>,
    /// Its id in the source, cut to 100 bytes.
    pub id: Option<String>,
}

/// What is wrong with a record, and whether more can follow it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The record is bad; those after it are read.
    #[error("{0}")]
    Record(String),
    /// The file is damaged or cut off here: nothing after this place was read.
    #[error("{0}; nothing after this place was read")]
    File(String),
    /// The device failed: nothing after this place was read.
    #[error("the file cannot be read any further")]
    Io(#[source] io::Error),
}

impl Fault {
    /// Whether nothing follows.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Record(_))
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        // The decompressor answers with these; a device that does is not told apart from it.
        match error.kind() {
            InvalidData | InvalidInput | UnexpectedEof => Self::File("gzip data that is damaged or cut off".to_owned()),
            _ => Self::Io(error),
        }
    }
}

/// Why a converter does not take a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal(String);

impl Refusal {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Says where in the record.
    pub(crate) fn at(self, place: impl fmt::Display) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Record(refusal.0)
    }
}
