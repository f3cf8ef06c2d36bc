//! The iterator over a file's items.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::iter::FusedIterator;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::value::RawValue;
use threadkeep_core::JsonText;
use threadkeep_core::exchange::{EXPORT_VERSION, ImportItem};

use crate::conversation::{Conversation, Converted};
use crate::error::{Fault, Refusal};
use crate::fields::{Fields, unreadable};
use crate::records::{Record, Records};
use crate::{
    ConversationName, Format, FormatError, LINE_BYTES, RecordError, chatgpt, claude, detect, input, locomo, name,
    openai_chat, sgd, share_gpt, threadkeep,
};

/// How many bad records may stand before the one that tells the format.
const RECORDS_LOOKED_AT: usize = 16;

/// Opens a conversation file, packed by gzip or not, and finds out its format unless it is given.
///
/// ```no_run
/// use threadkeep_core::exchange::ImportItem;
///
/// let mut reader = threadkeep_formats::open("conversations.json".as_ref(), None)?;
/// println!("reading {}", reader.format());
/// for item in &mut reader {
///     match item {
///         Ok(ImportItem::Thread(thread)) => println!("{:?}", thread.title),
///         Ok(_) => {}
///         Err(bad_record) => eprintln!("{bad_record}"),
///     }
/// }
/// # Ok::<(), threadkeep_formats::FormatError>(())
/// ```
///
/// # Errors
/// `Open` and `Read` when the system refuses, `Empty`, `Unrecognised` when no record tells a format, `LaterVersion` for
/// an export of a later Threadkeep. With a format given, whatever does not fit it shows in the records.
pub fn open(path: &Path, format: Option<Format>) -> Result<Reader, FormatError> {
    let file = File::open(path).map_err(|source| FormatError::Open { path: path.to_owned(), source })?;
    open_stream(Box::new(file), format)
}

/// Reads a conversation file from anywhere. As [`open`].
///
/// # Errors
/// As [`open`], without `Open`.
pub fn open_stream(source: Box<dyn Read + Send>, format: Option<Format>) -> Result<Reader, FormatError> {
    let bytes_read = Arc::new(AtomicU64::new(0));
    let input = input::open(source, Arc::clone(&bytes_read))?;
    let mut records = Records::open(input)?.ok_or(FormatError::Empty)?;
    let mut ahead = VecDeque::new();
    let format = match format {
        // Only an export has something to be checked before its first item.
        Some(given) if given != Format::Threadkeep => given,
        given => {
            let first = look_ahead(&mut records, &mut ahead);
            match given.or(first.format) {
                Some(Format::Threadkeep) => check_version(first.version)?,
                Some(found) => found,
                None => return Err(first.into_error(ahead)),
            }
        }
    };
    let converter = Converter::of(format);
    Ok(Reader { format, converter, records, ahead, items: VecDeque::new(), line: 0, record: 0, bytes_read })
}

/// What the first records tell.
#[derive(Default)]
struct First {
    format: Option<Format>,
    version: Option<u64>,
    saw: Option<String>,
}

/// Reads until a record tells its format. What was read waits in `ahead`.
fn look_ahead(records: &mut Records, ahead: &mut VecDeque<Result<Record, RecordError>>) -> First {
    let mut first = First::default();
    let mut bytes_held = 0;
    for record in records.take(RECORDS_LOOKED_AT) {
        if let Ok(record) = &record {
            bytes_held += record.text.len();
            match read_object(record) {
                Ok(fields) => first.look_at(&fields),
                Err(refusal) => {
                    first.saw_first(format!("a bad record first (line {}: {})", record.line, refusal.as_str()))
                }
            }
        }
        ahead.push_back(record);
        if first.format.is_some() || bytes_held > LINE_BYTES {
            break;
        }
    }
    first
}

impl First {
    fn look_at(&mut self, fields: &Fields<'_>) {
        self.format = detect::format_of(fields);
        self.version = threadkeep::version(fields).flatten();
        self.saw_first(detect::describe(fields));
    }

    fn saw_first(&mut self, what: impl Into<String>) {
        self.saw.get_or_insert_with(|| what.into());
    }

    fn into_error(self, ahead: VecDeque<Result<Record, RecordError>>) -> FormatError {
        let bad = ahead.into_iter().find_map(Result::err);
        match (self.saw, bad) {
            (_, Some(RecordError { fault: Fault::Io(error), .. })) => FormatError::Read(error),
            (Some(saw), _) => FormatError::Unrecognised { saw },
            (None, Some(bad)) => FormatError::Unrecognised { saw: format!("a bad record first ({bad})") },
            (None, None) => FormatError::Unrecognised { saw: "an empty list".to_owned() },
        }
    }
}

fn check_version(version: Option<u64>) -> Result<Format, FormatError> {
    match version {
        Some(version) if version > u64::from(EXPORT_VERSION) => {
            Err(FormatError::LaterVersion { version, known: EXPORT_VERSION })
        }
        Some(_) => Ok(Format::Threadkeep),
        None => Err(FormatError::Unrecognised { saw: "no header of an export".to_owned() }),
    }
}

/// Gives a conversation file's items in order, and an error for each record that cannot be read.
///
/// A message that cannot be read or stored is left out of its conversation and is an error of its own; a conversation of which
/// no message can be read is one error. In our own format each line is a record. After an error for
/// which [`Fault::is_final`] holds there is nothing more.
pub struct Reader {
    format: Format,
    converter: Converter,
    records: Records,
    ahead: VecDeque<Result<Record, RecordError>>,
    items: VecDeque<Result<ImportItem, RecordError>>,
    line: u64,
    record: u64,
    bytes_read: Arc<AtomicU64>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("format", &self.format).field("bytes_read", &self.bytes_read()).finish()
    }
}

impl Reader {
    /// The format that was given or found.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The line on which the record of the item that was given last starts; 0 before the first.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The place in the file of the record of the item that was given last; the first record is 0.
    #[must_use]
    pub fn record(&self) -> u64 {
        self.record
    }

    /// How many bytes of the file were read, packed ones where it is packed. Runs ahead of the items by a buffer.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// The counter behind [`Reader::bytes_read`], for who shows progress while another reads.
    #[must_use]
    pub fn byte_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes_read)
    }

    fn convert(&mut self, record: &Record) {
        (self.line, self.record) = (record.line, record.index);
        let Converted { items, left_out } = match self.converter.convert(record) {
            Ok(converted) => converted,
            Err(refusal) => Converted { items: Vec::new(), left_out: vec![refusal] },
        };
        self.items.extend(items.into_iter().map(Ok));
        if !left_out.is_empty() {
            let conversation = self.converter.name_of(record);
            let (line, record) = (record.line, record.index);
            let error = |refusal: Refusal| RecordError {
                line,
                record,
                conversation: conversation.clone(),
                fault: refusal.into(),
            };
            self.items.extend(left_out.into_iter().map(error).map(Err));
        }
    }
}

impl Iterator for Reader {
    type Item = Result<ImportItem, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Some(item);
            }
            match self.ahead.pop_front().or_else(|| self.records.next())? {
                Ok(record) => self.convert(&record),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl FusedIterator for Reader {}

/// How a record becomes items.
enum Converter {
    /// Each record is a conversation of its own.
    Conversations(fn(&Record, Fields<'_>) -> Result<Conversation, Refusal>),
    /// A record belongs to the one before.
    Export(threadkeep::Lines),
}

impl Converter {
    fn of(format: Format) -> Self {
        match format {
            Format::Threadkeep => Self::Export(threadkeep::Lines::default()),
            Format::OpenAiChat => Self::Conversations(openai_chat::convert),
            Format::ChatGptExport => Self::Conversations(chatgpt::convert),
            Format::ClaudeExport => Self::Conversations(claude::convert),
            Format::ShareGpt => Self::Conversations(share_gpt::convert),
            Format::Locomo => Self::Conversations(locomo::convert),
            Format::Sgd => Self::Conversations(sgd::convert),
        }
    }

    fn convert(&mut self, record: &Record) -> Result<Converted, Refusal> {
        let fields = read_object(record)?;
        match self {
            Self::Conversations(convert) => convert(record, fields)?.into_items(),
            Self::Export(lines) => {
                Ok(Converted { items: lines.convert(fields)?.into_iter().collect(), ..Converted::default() })
            }
        }
    }

    /// The conversation that a bad record is, or belongs to.
    fn name_of(&self, record: &Record) -> ConversationName {
        match self {
            Self::Conversations(_) => name::name_of(&record.text),
            Self::Export(lines) => lines.name(),
        }
    }
}

/// Checks that a text is JSON of bounded depth, so that nothing that reads it later can run out of stack.
fn read_object(record: &Record) -> Result<Fields<'_>, Refusal> {
    let text = record.text.as_str();
    let json: &RawValue = serde_json::from_str(text).map_err(|error| {
        let place = match error.line() {
            1 => format!("column {}", error.column()),
            line => format!("line {line} of the record, column {}", error.column()),
        };
        let offset = record.offset + offset_of(&error, text);
        Refusal::new(format!("not JSON ({} at {place}, byte offset {offset})", unreadable(&error).as_str()))
    })?;
    JsonText::new(text)?;
    Fields::read(json)
}

/// The byte of a text that an error is about; its columns count bytes from 1.
fn offset_of(error: &serde_json::Error, text: &str) -> u64 {
    let lines_before = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let before: usize = lines_before.map(str::len).sum();
    (before + error.column().saturating_sub(1)) as u64
}
