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
use crate::error::{Fault, Rejection};
use crate::fields::{Fields, parser_error};
use crate::records::{Record, Records};
use crate::{
    ConversationName, Format, FormatError, LINE_BYTES, RecordError, chatgpt, claude, detect, input, locomo, name,
    openai_chat, sgd, share_gpt, threadkeep,
};

/// The number of records read to detect the format. All but the last may be invalid.
const DETECTION_RECORDS: usize = 16;

/// Opens a conversation file, optionally gzip-compressed, and detects its format unless it is given.
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
/// `Open` and `Read` for errors of the operating system, `Empty`, `Unrecognised` if no record has a known format, and
/// `LaterVersion` for an export of a later version of Threadkeep. If a format is given, records that do not match it are
/// reported one by one while reading.
pub fn open(path: &Path, format: Option<Format>) -> Result<Reader, FormatError> {
    let file = File::open(path).map_err(|source| FormatError::Open { path: path.to_owned(), source })?;
    open_stream(Box::new(file), format)
}

/// Reads a conversation file from a stream, like [`open`].
///
/// # Errors
/// Those of [`open`], except `Open`.
pub fn open_stream(source: Box<dyn Read + Send>, format: Option<Format>) -> Result<Reader, FormatError> {
    let bytes_read = Arc::new(AtomicU64::new(0));
    let input = input::open(source, Arc::clone(&bytes_read))?;
    let mut records = Records::open(input)?.ok_or(FormatError::Empty)?;
    let mut buffered = VecDeque::new();
    let format = match format {
        // Only an export has a version to check before its first item.
        Some(given) if given != Format::Threadkeep => given,
        given => {
            let detection = detect(&mut records, &mut buffered);
            match given.or(detection.format) {
                Some(Format::Threadkeep) => check_version(detection.version)?,
                Some(detected) => detected,
                None => return Err(detection.into_error(buffered)),
            }
        }
    };
    let converter = Converter::of(format);
    Ok(Reader { format, converter, records, buffered, items: VecDeque::new(), line: 0, record: 0, bytes_read })
}

/// The result of format detection on the first records.
#[derive(Default)]
struct Detection {
    format: Option<Format>,
    version: Option<u64>,
    /// The first thing found, for an error message.
    found: Option<String>,
}

/// Reads records into `buffered` until one has a known format.
fn detect(records: &mut Records, buffered: &mut VecDeque<Result<Record, RecordError>>) -> Detection {
    let mut detection = Detection::default();
    let mut buffered_bytes = 0;
    for record in records.take(DETECTION_RECORDS) {
        if let Ok(record) = &record {
            buffered_bytes += record.text.len();
            match read_object(record) {
                Ok(fields) => detection.inspect(&fields),
                Err(rejection) => detection.note_found(format!(
                    "an invalid first record (line {}: {})",
                    record.line,
                    rejection.as_str()
                )),
            }
        }
        buffered.push_back(record);
        if detection.format.is_some() || buffered_bytes > LINE_BYTES {
            break;
        }
    }
    detection
}

impl Detection {
    fn inspect(&mut self, fields: &Fields<'_>) {
        self.format = detect::format_of(fields);
        self.version = threadkeep::version(fields).flatten();
        self.note_found(detect::describe(fields));
    }

    fn note_found(&mut self, found: impl Into<String>) {
        self.found.get_or_insert_with(|| found.into());
    }

    fn into_error(self, buffered: VecDeque<Result<Record, RecordError>>) -> FormatError {
        let bad = buffered.into_iter().find_map(Result::err);
        match (self.found, bad) {
            (_, Some(RecordError { fault: Fault::Io(error), .. })) => FormatError::Read(error),
            (Some(saw), _) => FormatError::Unrecognised { saw },
            (None, Some(bad)) => FormatError::Unrecognised { saw: format!("an invalid first record ({bad})") },
            (None, None) => FormatError::Unrecognised { saw: "an empty array".to_owned() },
        }
    }
}

fn check_version(version: Option<u64>) -> Result<Format, FormatError> {
    match version {
        Some(version) if version > u64::from(EXPORT_VERSION) => {
            Err(FormatError::LaterVersion { version, known: EXPORT_VERSION })
        }
        Some(_) => Ok(Format::Threadkeep),
        None => Err(FormatError::Unrecognised { saw: "no export header".to_owned() }),
    }
}

/// Iterates over a conversation file's items in order, with an error for each record that cannot be read.
///
/// A message that cannot be read or stored is skipped and yields a separate error; a conversation without a single readable
/// message yields one error. In Threadkeep's own format each line is a record. Iteration ends after an error for which
/// [`Fault::is_final`] is true.
pub struct Reader {
    format: Format,
    converter: Converter,
    records: Records,
    buffered: VecDeque<Result<Record, RecordError>>,
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
    /// The given or detected format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The line where the record of the last returned item starts; 0 before the first item.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The index in the file of the record of the last returned item; the first record is 0.
    #[must_use]
    pub fn record(&self) -> u64 {
        self.record
    }

    /// The number of bytes read from the file, before decompression. Runs ahead of the items by a buffer.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// The counter behind [`Reader::bytes_read`], for displaying progress from another thread.
    #[must_use]
    pub fn byte_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes_read)
    }

    fn convert(&mut self, record: &Record) {
        (self.line, self.record) = (record.line, record.index);
        let Converted { items, skipped } = match self.converter.convert(record) {
            Ok(converted) => converted,
            Err(rejection) => Converted { items: Vec::new(), skipped: vec![rejection] },
        };
        self.items.extend(items.into_iter().map(Ok));
        if !skipped.is_empty() {
            let conversation = self.converter.name_of(record);
            let (line, record) = (record.line, record.index);
            let error = |rejection: Rejection| RecordError {
                line,
                record,
                conversation: conversation.clone(),
                fault: rejection.into(),
            };
            self.items.extend(skipped.into_iter().map(error).map(Err));
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
            match self.buffered.pop_front().or_else(|| self.records.next())? {
                Ok(record) => self.convert(&record),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl FusedIterator for Reader {}

/// Converts records to items.
enum Converter {
    /// Each record is a separate conversation.
    Conversations(fn(&Record, Fields<'_>) -> Result<Conversation, Rejection>),
    /// A record can belong to the thread in an earlier record.
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

    fn convert(&mut self, record: &Record) -> Result<Converted, Rejection> {
        let fields = read_object(record)?;
        match self {
            Self::Conversations(convert) => convert(record, fields)?.into_items(),
            Self::Export(lines) => {
                Ok(Converted { items: lines.convert(fields)?.into_iter().collect(), ..Converted::default() })
            }
        }
    }

    /// Returns the conversation that an invalid record belongs to.
    fn name_of(&self, record: &Record) -> ConversationName {
        match self {
            Self::Conversations(_) => name::name_of(&record.text),
            Self::Export(lines) => lines.name(),
        }
    }
}

/// Checks that a text is JSON of bounded depth, so that parsing it later cannot overflow the stack.
fn read_object(record: &Record) -> Result<Fields<'_>, Rejection> {
    let text = record.text.as_str();
    let json: &RawValue = serde_json::from_str(text).map_err(|error| {
        let position = match error.line() {
            1 => format!("column {}", error.column()),
            line => format!("line {line} of the record, column {}", error.column()),
        };
        let offset = record.offset + offset_of(&error, text);
        Rejection::new(format!("invalid JSON ({} at {position}, byte offset {offset})", parser_error(&error).as_str()))
    })?;
    JsonText::new(text)?;
    Fields::read(json)
}

/// Returns the byte offset of an error in a text. Columns count bytes from 1.
fn offset_of(error: &serde_json::Error, text: &str) -> u64 {
    let lines_before = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let before: usize = lines_before.map(str::len).sum();
    (before + error.column().saturating_sub(1)) as u64
}
