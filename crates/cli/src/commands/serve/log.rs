mod format;

use std::panic::PanicHookInfo;

use anyhow::Result;
use tracing_subscriber::EnvFilter;

use crate::failure::Failure;
use crate::log_lines;
use crate::settings::Settings;
use format::LogFormat;

/// Starts the log, which is written to standard error. `RUST_LOG` sets its levels [default: info].
pub(super) fn init_log(settings: &Settings, as_json: bool) -> Result<()> {
    let filter = levels(&settings.get("RUST_LOG").unwrap_or_else(|| "info".to_owned()))?;
    let lines = log_lines::to_standard_error();
    let as_json = as_json || settings.read("THREADKEEP_LOG_JSON")?.unwrap_or(false);
    let format = LogFormat::new(as_json, lines.error_counter());
    let log =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines).with_ansi(false).event_format(format);
    // Fails if the process already has a log. That log stays in use.
    drop(log.try_init());
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Parses the levels. `rmcp` is never logged: its lines contain what MCP clients and servers send.
fn levels(levels: &str) -> Result<EnvFilter> {
    let filter = EnvFilter::try_new(levels).map_err(|error| Failure::usage(format!("RUST_LOG: {error}")))?;
    Ok(filter.add_directive("rmcp=off".parse()?))
}

/// Logs the location of a panic. Omits the message, which may quote user content.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    tracing::error!(location, "a task panicked");
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn what_mcp_programs_send_is_never_logged() {
        for given in ["info", "trace", "debug,rmcp=trace"] {
            let levels = levels(given).unwrap().to_string();
            assert!(levels.contains("rmcp=off") && !levels.contains("rmcp=trace"), "{levels}");
        }
    }

    #[derive(Clone, Default)]
    pub(super) struct CapturedLog(Arc<Mutex<Vec<u8>>>);

    impl CapturedLog {
        pub(super) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for CapturedLog {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn panic_is_logged_with_its_location_only() {
        let (captured, hook) = (CapturedLog::default(), std::panic::take_hook());
        let writer = captured.clone();
        let log = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        std::panic::set_hook(Box::new(log_panic));
        let broken =
            tracing::subscriber::with_default(log, || std::panic::catch_unwind(|| panic!("{} words", "hidden")));
        std::panic::set_hook(hook);
        let text = captured.text();
        assert!(broken.is_err());
        assert!(text.contains("log.rs:") && text.contains("a task panicked") && !text.contains("hidden"), "{text}");
    }
}
