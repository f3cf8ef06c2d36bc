//! An incremental parser of server-sent events, as specified in the HTML standard.

/// The maximum length of a line, and of the data of an event, in bytes.
const LINE_BYTES: usize = 4 * 1024 * 1024;

/// A server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) data: String,
}

/// Parses events from chunks of bytes.
#[derive(Debug, Default)]
pub(super) struct EventParser {
    line: Vec<u8>,
    /// Whether the last byte was a carriage return. A following line feed then belongs to the same line break.
    after_return: bool,
    is_after_first_line: bool,
    event: Event,
    has_data: bool,
}

/// A line or an event exceeds the maximum length.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl EventParser {
    pub(super) fn push(&mut self, bytes: &[u8], mut emit: impl FnMut(Event)) -> Result<(), TooLong> {
        for &byte in bytes {
            let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => {
                    if let Some(event) = self.end_line()? {
                        emit(event);
                    }
                }
                _ if self.line.len() >= LINE_BYTES => return Err(TooLong),
                _ => self.line.push(byte),
            }
        }
        Ok(())
    }

    /// Ends the stream. Unlike the standard, accepts a last event that is not terminated by a blank line, because some
    /// providers send one.
    pub(super) fn finish(mut self) -> Result<Option<Event>, TooLong> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        Ok(self.take_event())
    }

    fn end_line(&mut self) -> Result<Option<Event>, TooLong> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = if std::mem::replace(&mut self.is_after_first_line, true) {
            &*line
        } else {
            line.strip_prefix('\u{feff}').unwrap_or(&line)
        };
        if line.is_empty() {
            return Ok(self.take_event());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if self.event.data.len() + value.len() > LINE_BYTES {
                    return Err(TooLong);
                }
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            _ => {}
        }
        Ok(None)
    }

    fn take_event(&mut self) -> Option<Event> {
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<(String, String)> {
        let mut parser = EventParser::default();
        let mut events = Vec::new();
        for piece in pieces {
            parser.push(piece, |event| events.push(event)).unwrap();
        }
        events.extend(parser.finish().unwrap());
        events.into_iter().map(|event| (event.name, event.data)).collect()
    }

    fn event(name: &str, data: &str) -> (String, String) {
        (name.to_owned(), data.to_owned())
    }

    #[test]
    fn events_are_parsed_as_specified() {
        let text =
            "\u{feff}: comment\nevent: ping\ndata: {}\n\ndata:a\ndata: b\r\n\r\ndata\r\rid: 1\nretry: 5\n\ndata: last";
        let expected = [event("ping", "{}"), event("", "a\nb"), event("", ""), event("", "last")];
        assert_eq!(parse([text.as_bytes()]), expected);
        assert_eq!(parse([&b"data: \xff\n\n"[..]]), [event("", "\u{fffd}")]);
        assert_eq!(parse([&b""[..]]), []);
    }

    #[test]
    fn overlong_lines_and_events_are_rejected() {
        let mut parser = EventParser::default();
        let piece = vec![b'x'; LINE_BYTES];
        assert_eq!(parser.push(&piece, |_| {}), Ok(()));
        assert_eq!(parser.push(b"x", |_| {}), Err(TooLong));
        let mut parser = EventParser::default();
        let line = format!("data: {}\n", "x".repeat(LINE_BYTES / 2 + 1));
        assert_eq!(parser.push(line.as_bytes(), |_| {}), Ok(()));
        assert_eq!(parser.push(line.as_bytes(), |_| {}), Err(TooLong));
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_matter(
            text in "(data: ?|event: |é|\r\n|\n|\r|x|:|\u{feff}){0,40}",
            cuts in prop::collection::vec(0usize..200, 0..8),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(parse(pieces), parse([bytes]));
        }
    }
}
