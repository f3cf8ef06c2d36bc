//! Iterates over the items of a file.

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
use crate::file::FileName;
use crate::records::{Record, Records};
use crate::session::SessionRecords;
use crate::{
    ConversationName, Format, FormatError, LINE_BYTES, RecordError, aider, chatgpt, claude, claude_code, cline, codex,
    continue_dev, detect, gemini_cli, input, librechat, locomo, name, open_webui, openai_chat, sgd, share_gpt,
    slack_export, threadkeep,
};

/// The number of records that are read to detect the format. Detection ends with the first valid record.
const DETECTION_RECORDS: usize = 16;

/// Opens a conversation file, which can be gzip-compressed. Detects its format if `format` is `None`.
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
/// `LaterVersion` for an export of a later version of Threadkeep. If `format` is given, records that do not match it are
/// reported one by one while reading.
pub fn open(path: &Path, format: Option<Format>) -> Result<Reader, FormatError> {
    let file = File::open(path).map_err(|source| FormatError::Open { path: path.to_owned(), source })?;
    open_named_stream(Box::new(file), FileName::of(path), format)
}

/// Reads a conversation file from a stream. Otherwise like [`open`].
///
/// # Errors
/// As for [`open`], except `Open`.
pub fn open_stream(source: Box<dyn Read + Send>, format: Option<Format>) -> Result<Reader, FormatError> {
    open_named_stream(source, FileName::default(), format)
}

/// Reads a conversation file from a stream. The name of the file identifies the conversation in formats that contain no id.
///
/// # Errors
/// As for [`open`], except `Open`.
pub fn open_named_stream(
    source: Box<dyn Read + Send>,
    file: FileName,
    format: Option<Format>,
) -> Result<Reader, FormatError> {
    let bytes_read = Arc::new(AtomicU64::new(0));
    let input = input::open(source, Arc::clone(&bytes_read))?;
    let mut records = Records::open(input)?.ok_or(FormatError::Empty)?;
    let mut buffered = VecDeque::new();
    let format = match format {
        // Only exports of Threadkeep have a version, which must be checked before the first item.
        Some(given) if given != Format::Threadkeep => given,
        None if records.are_blocks() => Format::Aider,
        given => {
            let detection = detect(&mut records, &mut buffered, &file);
            match given.or(detection.format) {
                Some(Format::Threadkeep) => check_version(detection.version)?,
                Some(detected) => detected,
                None => return Err(detection.into_error(buffered)),
            }
        }
    };
    let converter = Converter::of(format, file);
    Ok(Reader { format, converter, records, buffered, items: VecDeque::new(), line: 0, record: 0, bytes_read })
}

/// The result of format detection on the first records.
#[derive(Default)]
struct Detection {
    format: Option<Format>,
    version: Option<u64>,
    /// What was found first, for an error message.
    found: Option<String>,
}

/// Reads records into `buffered` until a record has a known format.
fn detect(records: &mut Records, buffered: &mut VecDeque<Result<Record, RecordError>>, file: &FileName) -> Detection {
    let mut detection = Detection::default();
    let mut buffered_bytes = 0;
    for record in records.take(DETECTION_RECORDS) {
        if let Ok(record) = &record {
            buffered_bytes += record.text.len();
            match read_object(record) {
                Ok(fields) => detection.inspect(&fields, file),
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
    fn inspect(&mut self, fields: &Fields<'_>, file: &FileName) {
        self.format = detect::format_of(fields, file);
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
            (Some(found), _) => FormatError::Unrecognised { found },
            (None, Some(bad)) => FormatError::Unrecognised { found: format!("an invalid first record ({bad})") },
            (None, None) => FormatError::Unrecognised { found: "an empty array".to_owned() },
        }
    }
}

fn check_version(version: Option<u64>) -> Result<Format, FormatError> {
    match version {
        Some(version) if version > u64::from(EXPORT_VERSION) => {
            Err(FormatError::LaterVersion { version, known: EXPORT_VERSION })
        }
        Some(_) => Ok(Format::Threadkeep),
        None => Err(FormatError::Unrecognised { found: "no export header".to_owned() }),
    }
}

/// Iterates over the items of a conversation file in order. Yields an error for each record that cannot be read.
///
/// A message that cannot be read or stored is skipped and yields a separate error. A conversation without any readable
/// message yields one error. In Threadkeep's own format, each line is a record. Iteration ends after an error for which
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
    /// Returns the given or detected format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the line on which the record of the last item starts; 0 before the first item.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the 0-based index in the file of the last item's record.
    #[must_use]
    pub fn record(&self) -> u64 {
        self.record
    }

    /// Returns the number of bytes read from the file, before decompression. The reader reads ahead of the items by up
    /// to one buffer.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Returns the counter behind [`Reader::bytes_read`], so that another thread can display progress.
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
    /// Converts each record to a separate conversation.
    Conversations(fn(&Record, Fields<'_>) -> Result<Conversation, Rejection>),
    /// Converts lines of an export, where a record can belong to the thread of an earlier line.
    Export(threadkeep::Lines),
    /// Converts lines of a session, where a line belongs to the thread of an earlier line.
    Session(Box<dyn SessionRecords>),
    /// Converts an object together with the name of its file.
    Named(fn(&Record, Fields<'_>, &FileName) -> Result<Conversation, Rejection>, FileName),
    /// Converts blocks of Markdown.
    Blocks(aider::Blocks),
}

impl Converter {
    fn of(format: Format, file: FileName) -> Self {
        match format {
            Format::Threadkeep => Self::Export(threadkeep::Lines::default()),
            Format::OpenAiChat => Self::Conversations(openai_chat::convert),
            Format::ChatGptExport => Self::Conversations(chatgpt::convert),
            Format::ClaudeExport => Self::Conversations(claude::convert),
            Format::ShareGpt => Self::Conversations(share_gpt::convert),
            Format::Locomo => Self::Conversations(locomo::convert),
            Format::Sgd => Self::Conversations(sgd::convert),
            Format::OpenWebUi => Self::Conversations(open_webui::convert),
            Format::LibreChat => Self::Conversations(librechat::convert),
            Format::Continue => Self::Named(continue_dev::convert, file),
            Format::ClaudeCode => Self::Session(Box::new(claude_code::Lines::default())),
            Format::Codex => Self::Session(Box::new(codex::Lines::default())),
            Format::GeminiCli => Self::Session(Box::new(gemini_cli::Lines::default())),
            Format::Cline => Self::Session(Box::new(cline::TaskMessages::new(file))),
            Format::SlackExport => Self::Session(Box::new(slack_export::Messages::new(file))),
            Format::Aider => Self::Blocks(aider::Blocks::new(file)),
        }
    }

    fn convert(&mut self, record: &Record) -> Result<Converted, Rejection> {
        match self {
            Self::Conversations(convert) => convert(record, read_object(record)?)?.into_items(),
            Self::Named(convert, file) => convert(record, read_object(record)?, file)?.into_items(),
            Self::Session(lines) => lines.convert(record, read_object(record)?),
            Self::Blocks(blocks) => blocks.convert(record),
            Self::Export(lines) => {
                let items = lines.convert(read_object(record)?)?.into_iter().collect();
                Ok(Converted { items, ..Converted::default() })
            }
        }
    }

    /// Returns the conversation to which an invalid record belongs.
    fn name_of(&self, record: &Record) -> ConversationName {
        match self {
            Self::Conversations(_) => name::name_of(&record.text),
            Self::Export(lines) => lines.name(),
            Self::Session(lines) => lines.name(),
            Self::Named(..) => name::name_of(&record.text),
            Self::Blocks(blocks) => blocks.name(),
        }
    }
}

/// Checks that the text is JSON of limited depth, so that parsing it later cannot overflow the stack.
pub(crate) fn read_object(record: &Record) -> Result<Fields<'_>, Rejection> {
    let text = record.text.as_str();
    let json: &RawValue = serde_json::from_str(text).map_err(|error| {
        let position = match error.line() {
            1 => format!("column {}", error.column()),
            line => format!("line {line} of the record, column {}", error.column()),
        };
        let offset = record.offset + offset_of(&error, text);
        Rejection::new(format!("invalid JSON ({} at {position}, byte offset {offset})", parser_error(&error).as_str()))
    })?;
    let fields = Fields::read(json)?;
    // The messages of such an export are nested in each other. They are read one level at a time.
    if fields.get(librechat::TREE).is_none() {
        JsonText::new(text)?;
    }
    Ok(fields)
}

/// Returns the byte offset of an error in the text. The parser's columns count bytes from 1.
fn offset_of(error: &serde_json::Error, text: &str) -> u64 {
    let lines_before = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let before: usize = lines_before.map(str::len).sum();
    (before + error.column().saturating_sub(1)) as u64
}
