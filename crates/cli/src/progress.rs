//! Shows progress bars on standard error. They are drawn only on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The interval at which a spinner is redrawn.
const TICK: Duration = Duration::from_millis(120);

/// Returns a bar that counts bytes. A total of 0 means a stream of unknown length, for which only the bytes so far are
/// shown.
pub(crate) fn bytes(total: u64) -> ProgressBar {
    if total == 0 {
        return bar(0, "{spinner} {bytes} {wide_msg}");
    }
    bar(total, "{bar:24} {bytes:>10} / {total_bytes:10} {wide_msg}")
}

/// Returns a bar that counts items.
pub(crate) fn count(total: u64, items: &str) -> ProgressBar {
    bar(total, &format!("{{bar:24}} {{human_pos}} / {{human_len}} {items} {{wide_msg}}"))
}

/// Returns a spinner with a message.
pub(crate) fn spinner(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(style("{spinner} {wide_msg}"));
    bar.set_message(what);
    bar.enable_steady_tick(TICK);
    bar
}

fn bar(total: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    bar.set_style(style(template).progress_chars("━╸─"));
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
