//! Memory is bounded by the size of a record, not of the file.

use std::io::{Cursor, Read};

use threadkeep_core::exchange::ImportItem;
use threadkeep_formats::open_stream;

const LINE: &str = r#"{"messages":[{"role":"user","content":"again"}]}"#;

/// Repeats the same bytes forever.
struct RepeatingReader(Cursor<String>);

impl RepeatingReader {
    fn new(text: String) -> Self {
        Self(Cursor::new(text))
    }
}

impl Read for RepeatingReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.0.position() == self.0.get_ref().len() as u64 {
            self.0.set_position(0);
        }
        self.0.read(buffer)
    }
}

#[test]
fn an_endless_file_is_read_incrementally() {
    let sources: [Box<dyn Read + Send>; 3] = [
        Box::new(RepeatingReader::new(format!("{LINE}\n"))),
        Box::new(Cursor::new("[").chain(RepeatingReader::new(format!("{LINE},")))),
        Box::new(RepeatingReader::new(LINE.replacen('{', "{\n ", 1))),
    ];
    for source in sources {
        let mut reader = open_stream(source, None).unwrap();
        let threads = reader.by_ref().take(20_000).filter(|item| matches!(item, Ok(ImportItem::Thread(_))));
        assert_eq!(threads.count(), 10_000);
        // The reader may read ahead by up to two buffers.
        let needed = 10_000 * LINE.len() as u64;
        assert!((needed..needed + 400_000).contains(&reader.bytes_read()), "{}", reader.bytes_read());
    }
}

#[test]
fn the_byte_counter_reports_progress() {
    let mut reader = open_stream(Box::new(Cursor::new(format!("{LINE}\n").repeat(10_000))), None).unwrap();
    let counter = reader.byte_counter();
    let at_start = counter.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(reader.by_ref().count(), 20_000);
    let at_end = counter.load(std::sync::atomic::Ordering::Relaxed);
    assert!(at_start < at_end && at_end == 10_000 * (LINE.len() as u64 + 1), "{at_start} {at_end}");
}
