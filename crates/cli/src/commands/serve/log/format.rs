use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use threadkeep::{Clock, SystemClock};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_appender::non_blocking::ErrorCounter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The field that contains the text of the line.
const MESSAGE: &str = "message";
/// The field that contains the id of a request.
const REQUEST_ID: &str = "request_id";
/// The field that contains the total number of lost lines. Part of the first line after a loss.
const LOST: &str = "lost_lines";

/// Formats log lines: time, level, target, message and fields. The id of a request is a field, which costs less than a span
/// per request.
#[derive(Debug)]
pub(super) struct LogFormat {
    /// Whether a line is a JSON object.
    as_json: bool,
    lost: ErrorCounter,
    reported_losses: AtomicUsize,
}

impl LogFormat {
    pub(super) fn new(as_json: bool, lost: ErrorCounter) -> Self {
        Self { as_json, lost, reported_losses: AtomicUsize::new(0) }
    }

    /// Returns the total number of lost lines if it changed since the last call. If the line with this number is lost as
    /// well, the total changes again and the next line contains it.
    fn newly_lost(&self) -> Option<usize> {
        let lost = self.lost.dropped_lines();
        (self.reported_losses.swap(lost, Ordering::Relaxed) != lost).then_some(lost)
    }
}

impl<S, N> FormatEvent<S, N> for LogFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let (request_id, lost) = (threadkeep_server::request_id(), self.newly_lost());
        let now = SystemClock.now();
        if self.as_json {
            write!(writer, "{{\"timestamp\":\"{now:#}\",\"level\":\"{level}\"")?;
            let mut fields = JsonFields { writer: writer.by_ref(), written: Ok(()) };
            event.record(&mut fields);
            fields.member("target", target);
            request_id.into_iter().for_each(|id| fields.member(REQUEST_ID, id));
            lost.into_iter().for_each(|lost| fields.member(LOST, lost));
            fields.written?;
            return writer.write_str("}\n");
        }
        write!(writer, "{now:#} {level:>5} {target}:")?;
        let mut fields = TextFields { writer: writer.by_ref(), written: Ok(()) };
        event.record(&mut fields);
        fields.written?;
        request_id.into_iter().try_for_each(|id| write!(writer, " {REQUEST_ID}={id:?}"))?;
        lost.into_iter().try_for_each(|lost| write!(writer, " {LOST}={lost}"))?;
        writer.write_str("\n")
    }
}

struct TextFields<'w> {
    writer: Writer<'w>,
    written: fmt::Result,
}

impl TextFields<'_> {
    /// Writes a value that contains no control characters.
    fn plain(&mut self, field: &Field, value: impl fmt::Display) {
        let writer = &mut self.writer;
        self.written = self.written.and_then(|()| write!(writer, " {}={value}", field.name()));
    }
}

impl Visit for TextFields<'_> {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        if field.name() == MESSAGE || !value.bytes().all(is_plain) {
            return self.record_debug(field, &value);
        }
        // The same output as `Debug`, without the cost of escaping each character.
        let writer = &mut self.writer;
        self.written = self.written.and_then(|()| {
            [" ", field.name(), "=\"", value, "\""].into_iter().try_for_each(|piece| writer.write_str(piece))
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut writer = ControlEscaper(self.writer.by_ref());
        self.written = self.written.and_then(|()| match field.name() {
            MESSAGE => write!(writer, " {value:?}"),
            name => write!(writer, " {name}={value:?}"),
        });
    }
}

/// Escapes control characters, so that a value stays on one line and contains no terminal control sequences.
struct ControlEscaper<'w>(Writer<'w>);

impl fmt::Write for ControlEscaper<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.split_inclusive(char::is_control) {
            let plain = piece.trim_end_matches(char::is_control);
            self.0.write_str(plain)?;
            piece[plain.len()..].chars().try_for_each(|control| write!(self.0, "{}", control.escape_default()))?;
        }
        Ok(())
    }
}

struct JsonFields<'w> {
    writer: Writer<'w>,
    written: fmt::Result,
}

impl JsonFields<'_> {
    fn member(&mut self, name: &str, value: impl Into<Value>) {
        let (writer, value) = (&mut self.writer, value.into());
        self.written = self.written.and_then(|()| write!(writer, ",\"{name}\":{value}"));
    }
}

impl Visit for JsonFields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.member(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.member(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.member(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.member(field.name(), value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.member(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.member(field.name(), format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc;

    use serde_json::json;
    use tracing_appender::non_blocking::NonBlockingBuilder;

    use super::super::tests::CapturedLog;
    use super::*;

    /// Returns the text of a logged line.
    fn logged(as_json: bool) -> String {
        let captured = CapturedLog::default();
        let (lines, guard) = tracing_appender::non_blocking(captured.clone());
        let format = LogFormat::new(as_json, lines.error_counter());
        let log = tracing_subscriber::fmt().event_format(format).with_writer(lines).finish();
        tracing::subscriber::with_default(log, || {
            let (text, words) = ("it said \"no\"\nand left", vec!["a", "b"]);
            let (plain, control) = ("as it is", format_args!("red \u{1b}[31m\r\nand a line"));
            tracing::warn!(text, number = -3, share = 0.5, is_new = true, ?words, plain, %control, "two {}", "words");
        });
        drop(guard);
        captured.text()
    }

    #[test]
    fn text_line_escapes_control_characters() {
        let line = logged(false);
        let (at, rest) = line.split_once("  WARN ").unwrap();
        assert!(at.parse::<threadkeep::Timestamp>().is_ok(), "{at}");
        let expected = "two words text=\"it said \\\"no\\\"\\nand left\" number=-3 share=0.5 is_new=true words=[\"a\", \"b\"] \
                        plain=\"as it is\" control=red \\u{1b}[31m\\r\\nand a line\n";
        assert_eq!(rest.split_once(": ").unwrap(), (module_path!(), expected));
    }

    #[test]
    fn json_line_is_one_object() {
        let line = logged(true);
        let mut object: Value = serde_json::from_str(&line).unwrap();
        let at = object.as_object_mut().unwrap().remove("timestamp").unwrap();
        assert!(at.as_str().unwrap().parse::<threadkeep::Timestamp>().is_ok(), "{at}");
        let expected = json!({
            "level": "WARN", "message": "two words", "text": "it said \"no\"\nand left", "number": -3, "share": 0.5,
            "is_new": true, "words": "[\"a\", \"b\"]", "plain": "as it is",
            "control": "red \u{1b}[31m\r\nand a line", "target": module_path!(),
        });
        assert_eq!((object, line.matches('\n').count()), (expected, 1));
    }

    /// A writer that blocks until its permit is dropped.
    struct BlockedWriter(mpsc::Receiver<()>, CapturedLog);

    impl Write for BlockedWriter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.recv();
            self.1.write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_over_the_buffer_limit_are_counted_as_lost() {
        for as_json in [false, true] {
            let (captured, (permit, permits)) = (CapturedLog::default(), mpsc::channel());
            let builder = NonBlockingBuilder::default().buffered_lines_limit(2);
            let (lines, guard) = builder.finish(BlockedWriter(permits, captured.clone()));
            let format = LogFormat::new(as_json, lines.error_counter());
            let log = tracing_subscriber::fmt().event_format(format).with_writer(lines).finish();
            tracing::subscriber::with_default(log, || {
                for number in 0..10 {
                    tracing::info!(number, "a line");
                }
                drop(permit);
                // The buffer may be full until the waiting lines are written.
                while captured.text().lines().count() < 2 {
                    std::thread::yield_now();
                }
                tracing::info!("the last one");
            });
            drop(guard);
            let text = captured.text();
            let before = text.lines().count() - 1;
            let lost = if as_json {
                format!("\"lost_lines\":{}", 10 - before)
            } else {
                format!(" lost_lines={}", 10 - before)
            };
            // The writer may have taken a line before all ten were logged. Then one of these, which was not lost, has the number.
            let reported = text.lines().rfind(|line| line.contains("lost_lines")).unwrap_or_default();
            assert!(before < 10 && text.lines().last().unwrap().contains("the last one"), "{text}");
            assert!(reported.contains(&lost), "{text}");
        }
    }
}
