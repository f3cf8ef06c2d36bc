//! Reads records from JSON, JSON Lines and CSV files, optionally compressed with gzip.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use threadkeep::{Map, Value};
use tokio::sync::mpsc::Sender;

use super::ReaderMessage;
use crate::corpus::Item;
use crate::record::Tesis;
use crate::statute;

/// The maximum length of a line, in bytes.
const LINE_BYTES: u64 = 16 * 1024 * 1024;
/// The maximum number of files in one import.
const MAX_FILES: usize = 10_000;
/// The number of bytes after which progress is reported.
const PROGRESS_BYTES: u64 = 1024 * 1024;
/// The fields of an object that can contain a list of records.
const LISTS: [&str; 8] = ["documents", "resultados", "results", "tesis", "corpus", "data", "records", "items"];

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct ReadError {
    path: PathBuf,
    reason: String,
}

impl ReadError {
    pub(crate) fn of(path: &Path, reason: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// Returns the files at the paths. The files of a folder are sorted by name.
pub(crate) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, ReadError> {
    let mut files = Vec::new();
    for path in paths {
        let metadata = path.metadata().map_err(|error| ReadError::of(path, error))?;
        if metadata.is_file() {
            files.push(path.clone());
            continue;
        }
        if !metadata.is_dir() {
            return Err(ReadError::of(path, "neither a file nor a folder"));
        }
        let entries = path.read_dir().map_err(|error| ReadError::of(path, error))?;
        let mut found: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_file() && format_of(path).is_some())
            .collect();
        found.sort();
        if found.is_empty() {
            return Err(ReadError::of(path, "no .json, .jsonl or .csv file in this folder"));
        }
        files.extend(found);
    }
    match files.len() {
        0..=MAX_FILES => Ok(files),
        count => Err(ReadError::of(&files[MAX_FILES], format!("too many files: {count}; the maximum is {MAX_FILES}"))),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Lines,
    Csv,
}

fn format_of(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    match name.rsplit_once('.')?.1 {
        "json" => Some(Format::Json),
        "jsonl" | "ndjson" => Some(Format::Lines),
        "csv" => Some(Format::Csv),
        _ => None,
    }
}

/// Reads a file and sends its items. Stops without an error if the receiver is gone.
pub(crate) fn read(path: &Path, sender: &Sender<ReaderMessage>) -> Result<(), ReadError> {
    let failed = |error: io::Error| ReadError::of(path, error);
    let format = format_of(path)
        .ok_or_else(|| ReadError::of(path, "unknown format; expected .json, .jsonl or .csv, optionally with .gz"))?;
    let file = File::open(path).map_err(failed)?;
    let count = Rc::new(Cell::new(0));
    let counted = CountingReader { inner: file, count: Rc::clone(&count) };
    let is_compressed = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
    let source: Box<dyn Read> = if is_compressed { Box::new(MultiGzDecoder::new(counted)) } else { Box::new(counted) };
    let mut output = Output { path, sender, count, reported: 0 };
    let mut source = BufReader::with_capacity(256 * 1024, source);
    skip_byte_order_mark(&mut source).map_err(failed)?;
    match format {
        Format::Lines => read_lines(source, &mut output),
        Format::Csv => read_csv(source, &mut output),
        Format::Json => read_json(source, &mut output),
    }
}

/// Skips a byte order mark.
fn skip_byte_order_mark(source: &mut impl BufRead) -> io::Result<()> {
    if source.fill_buf()?.starts_with("\u{feff}".as_bytes()) {
        source.consume(3);
    }
    Ok(())
}

/// Counts the bytes that are read from a file.
struct CountingReader<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

struct Output<'a> {
    path: &'a Path,
    sender: &'a Sender<ReaderMessage>,
    count: Rc<Cell<u64>>,
    reported: u64,
}

/// The receiver of the channel was dropped.
struct ReceiverDropped;

impl Output<'_> {
    fn send(&mut self, parsed: ReaderMessage) -> Result<(), ReceiverDropped> {
        if self.count.get() >= self.reported + PROGRESS_BYTES {
            self.reported = self.count.get();
            self.sender.blocking_send(ReaderMessage::Bytes(self.reported)).map_err(|_| ReceiverDropped)?;
        }
        self.sender.blocking_send(parsed).map_err(|_| ReceiverDropped)
    }

    fn broken(&mut self, place: &str, reason: &dyn fmt::Display) -> Result<(), ReceiverDropped> {
        let problem = format!("{}, {place}: {reason}", self.path.display());
        self.send(ReaderMessage::Broken(problem))
    }

    /// Sends the items in a record, or the reason why it is broken.
    fn record(&mut self, place: &str, record: Value) -> Result<(), ReceiverDropped> {
        match items_of(&record) {
            Ok(items) => self.send(ReaderMessage::Items(items)),
            Err(reason) => self.broken(place, &reason),
        }
    }
}

fn items_of(record: &Value) -> Result<Vec<Item>, String> {
    let Some(object) = record.as_object() else { return Err("not an object".to_owned()) };
    if Tesis::is_tesis(object) {
        return Ok(vec![Item::Tesis(Tesis::from_record(record).map_err(|error| error.to_string())?)]);
    }
    if let Some(articles) = statute::articles(object) {
        return Ok(articles);
    }
    statute::passages(object).ok_or_else(|| {
        "neither a tesis (rubro), nor a statute (law_id, articles), nor a document (_id, text)".to_owned()
    })
}

fn read_lines(mut source: impl BufRead, output: &mut Output<'_>) -> Result<(), ReadError> {
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = source.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line);
        if read.map_err(|error| ReadError::of(output.path, error))? == 0 {
            break;
        }
        if line.len() as u64 >= LINE_BYTES {
            return Err(ReadError::of(output.path, format!("line {number} is longer than {LINE_BYTES} bytes")));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let place = format!("line {number}");
        let sent = match serde_json::from_slice(&line) {
            Ok(record) => output.record(&place, record),
            Err(error) => output.broken(&place, &format!("not JSON: {error}")),
        };
        if sent.is_err() {
            break;
        }
    }
    Ok(())
}

fn read_csv(source: impl Read, output: &mut Output<'_>) -> Result<(), ReadError> {
    let failed = |path: &Path, error: csv::Error| ReadError::of(path, error);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(source);
    let headers = reader.headers().map_err(|error| failed(output.path, error))?.clone();
    let mut row = csv::StringRecord::new();
    loop {
        let read = reader.read_record(&mut row);
        let place = format!("line {}", row.position().map_or(0, csv::Position::line));
        let sent = match read {
            Ok(false) => break,
            Ok(true) => output.record(&place, Value::Object(object_of(&headers, &row))),
            Err(error) if matches!(error.kind(), csv::ErrorKind::Utf8 { .. }) => output.broken(&place, &"not UTF-8"),
            Err(error) => return Err(failed(output.path, error)),
        };
        if sent.is_err() {
            break;
        }
    }
    Ok(())
}

/// Returns a row of a table as an object. Empty cells are omitted.
fn object_of(headers: &csv::StringRecord, row: &csv::StringRecord) -> Map {
    let cells = headers.iter().zip(row).filter(|(_, cell)| !cell.trim().is_empty() && *cell != "null");
    cells.map(|(name, cell)| (name.trim().to_owned(), Value::from(cell))).collect()
}

/// Reads a JSON file: an array of records, a statute, an object with a list of records, or one record.
fn read_json(source: impl BufRead, output: &mut Output<'_>) -> Result<(), ReadError> {
    let path = output.path;
    let mut deserializer = serde_json::Deserializer::from_reader(source);
    match (TopLevel { output }).deserialize(&mut deserializer) {
        Ok(()) => deserializer.end().map_err(|error| ReadError::of(path, error)),
        Err(error) if error.to_string().starts_with(CLOSED) => Ok(()),
        Err(error) => Err(ReadError::of(path, format!("not JSON: {error}"))),
    }
}

/// The message of the error that stops reading if the receiver is gone.
const CLOSED: &str = "the import was stopped";

struct TopLevel<'a, 'b> {
    output: &'a mut Output<'b>,
}

impl<'de> DeserializeSeed<'de> for TopLevel<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TopLevel<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of records or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut number = 0_u64;
        while let Some(record) = list.next_element::<Value>()? {
            number += 1;
            self.output.record(&format!("record {number}"), record).map_err(|ReceiverDropped| closed())?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let mut members = Map::new();
        let mut has_list = false;
        while let Some(name) = object.next_key::<String>()? {
            if has_list {
                object.next_value::<IgnoredAny>()?;
                continue;
            }
            let is_list = LISTS.contains(&name.as_str());
            let value = if is_list {
                object.next_value_seed(ListOrValue { output: &mut *self.output })?
            } else {
                object.next_value().map(Some)?
            };
            match value {
                Some(value) => drop(members.insert(name, value)),
                None => has_list = true,
            }
        }
        match has_list {
            true => Ok(()),
            false => self.output.record("record 1", Value::Object(members)).map_err(|ReceiverDropped| closed()),
        }
    }
}

/// Sends the records of a list one by one; returns any other value.
struct ListOrValue<'a, 'b> {
    output: &'a mut Output<'b>,
}

impl<'de> DeserializeSeed<'de> for ListOrValue<'_, '_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ListOrValue<'_, '_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        TopLevel { output: self.output }.visit_seq(list).map(|()| None)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.into()))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Some(number.into()))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Some(number.into()))
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
        Ok(Some(Value::Null))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = object.next_entry()? {
            members.insert(name, value);
        }
        Ok(Some(Value::Object(members)))
    }
}

fn closed<E: serde::de::Error>() -> E {
    E::custom(CLOSED)
}
