use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use threadkeep_core::StoreError;

use crate::Format;

/// An error that prevents a file from being read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file cannot be opened. Check its path and permissions.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file was opened but cannot be read.
    #[error("cannot read the file")]
    Read(#[source] io::Error),
    /// The file is empty or contains only whitespace.
    #[error("the file is empty")]
    Empty,
    /// The format of the file is unknown. Convert the file, or specify its format if only its first records are damaged.
    #[error("unknown conversation format: found {found}; supported formats are {}", Format::list())]
    Unrecognised {
        /// What was found instead. Can contain field names, but no message text.
        found: String,
    },
    /// The export was written by a later version of Threadkeep. Import it with that version or a later one.
    #[error("export version {version} is not supported; the latest supported version is {known}")]
    LaterVersion {
        /// The version of the export.
        version: u64,
        /// The latest supported version.
        known: u32,
    },
    /// No format has this name.
    #[error("unknown format `{name}`; supported formats are {}", Format::list())]
    UnknownName {
        /// The name.
        name: String,
    },
}

impl From<io::Error> for FormatError {
    fn from(error: io::Error) -> Self {
        match Fault::from(error) {
            Fault::Io(error) => Self::Read(error),
            Fault::Record(found) | Fault::File(found) => Self::Unrecognised { found },
        }
    }
}

/// An error in one record, with its location.
///
/// The message contains the reason and the conversation's id, but never its title or message text.
#[derive(Debug)]
pub struct RecordError {
    /// The 1-based line on which the record starts.
    pub line: u64,
    /// The 0-based index of the record in the file.
    pub record: u64,
    /// The conversation that contains the record. Incomplete if its name cannot be read.
    pub conversation: ConversationName,
    /// The cause.
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
        // `Display` already includes the message of the fault.
        self.fault.source()
    }
}

/// The title and id of a conversation in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationName {
    /// The title. It is user content and must not be logged.
    pub title: Option<String>,
    /// The id in the source, truncated to 100 bytes.
    pub id: Option<String>,
}

/// The cause of a [`RecordError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The record is invalid. Reading continues with the next record.
    #[error("{0}")]
    Record(String),
    /// The file is damaged or truncated at this point. The rest of the file is not read.
    #[error("{0}; the rest of the file was not read")]
    File(String),
    /// Reading the file failed. The rest of the file is not read.
    #[error("cannot read the rest of the file")]
    Io(#[source] io::Error),
}

impl Fault {
    /// Whether this error ends the file.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Record(_))
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        // The decompressor returns these kinds. An error of the device with the same kind cannot be distinguished from them.
        match error.kind() {
            InvalidData | InvalidInput | UnexpectedEof => Self::File("damaged or truncated gzip data".to_owned()),
            _ => Self::Io(error),
        }
    }
}

/// The reason why a record, or part of it, is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rejection(String);

impl Rejection {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Prefixes the reason with its location in the record.
    pub(crate) fn at(self, location: impl fmt::Display) -> Self {
        Self(format!("{location}: {}", self.0))
    }
}

impl From<StoreError> for Rejection {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

impl From<Rejection> for Fault {
    fn from(rejection: Rejection) -> Self {
        Self::Record(rejection.0)
    }
}
