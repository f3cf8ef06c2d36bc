use std::fmt;

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The field whose value is the line's text.
const MESSAGE: &str = "message";
/// The field that names a request.
const REQUEST_ID: &str = "request_id";

/// Writes a line: when, how severe, from where and what, and for which request, which costs less than a span for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    /// An object.
    Json,
}

impl<S, N> FormatEvent<S, N> for Form
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let request_id = threadkeep_server::request_id();
        match self {
            Self::Text => {
                SystemTime.format_time(&mut writer)?;
                write!(writer, " {level:>5} {target}:")?;
                let mut fields = TextFields { writer: writer.by_ref(), written: Ok(()) };
                event.record(&mut fields);
                fields.written?;
                if let Some(request_id) = request_id {
                    write!(writer, " {REQUEST_ID}={request_id:?}")?;
                }
            }
            Self::Json => {
                writer.write_str("{\"timestamp\":\"")?;
                SystemTime.format_time(&mut writer)?;
                write!(writer, "\",\"level\":\"{level}\"")?;
                let mut fields = JsonFields { writer: writer.by_ref(), written: Ok(()) };
                event.record(&mut fields);
                fields.member("target", target);
                if let Some(request_id) = request_id {
                    fields.member(REQUEST_ID, request_id);
                }
                fields.written?;
                writer.write_str("}")?;
            }
        }
        writeln!(writer)
    }
}

struct TextFields<'w> {
    writer: Writer<'w>,
    written: fmt::Result,
}

impl Visit for TextFields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        if field.name() == MESSAGE || !value.bytes().all(is_plain) {
            return self.record_debug(field, &value);
        }
        // As `Debug` has it, which looks at every character.
        let writer = &mut self.writer;
        self.written = self.written.and_then(|()| {
            [" ", field.name(), "=\"", value, "\""].into_iter().try_for_each(|piece| writer.write_str(piece))
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let writer = &mut self.writer;
        self.written = self.written.and_then(|()| match field.name() {
            MESSAGE => write!(writer, " {value:?}"),
            name => write!(writer, " {name}={value:?}"),
        });
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
    use serde_json::json;

    use super::super::tests::Kept;
    use super::*;

    fn lines(form: Form) -> String {
        let kept = Kept::default();
        let writer = kept.clone();
        let log = tracing_subscriber::fmt().event_format(form).with_writer(move || writer.clone()).finish();
        tracing::subscriber::with_default(log, || {
            let (text, words) = ("it said \"no\"\nand left", vec!["a", "b"]);
            tracing::warn!(text, number = -3, share = 0.5, is_it = true, ?words, plain = %"as it is", "two {}", "words");
        });
        kept.text()
    }

    #[test]
    fn a_line_of_text_is_one_line() {
        let line = lines(Form::Text);
        let (at, rest) = line.split_once("  WARN ").unwrap();
        assert!(at.parse::<threadkeep::Timestamp>().is_ok(), "{at}");
        let expected = "two words text=\"it said \\\"no\\\"\\nand left\" number=-3 share=0.5 is_it=true words=[\"a\", \"b\"] \
                        plain=as it is\n";
        assert_eq!(rest.split_once(": ").unwrap(), (module_path!(), expected));
    }

    #[test]
    fn a_line_in_json_is_an_object() {
        let line = lines(Form::Json);
        let mut object: Value = serde_json::from_str(&line).unwrap();
        let at = object.as_object_mut().unwrap().remove("timestamp").unwrap();
        assert!(at.as_str().unwrap().parse::<threadkeep::Timestamp>().is_ok(), "{at}");
        let expected = json!({
            "level": "WARN", "message": "two words", "text": "it said \"no\"\nand left", "number": -3, "share": 0.5,
            "is_it": true, "words": "[\"a\", \"b\"]", "plain": "as it is", "target": module_path!(),
        });
        assert_eq!((object, line.matches('\n').count()), (expected, 1));
    }
}
