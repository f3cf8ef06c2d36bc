//! Takes over the terminal, and gives it back however the program ends.

use std::io::{self, Stdout, Write, stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use crossterm::{execute, queue};
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};

use crate::interrupt::Interrupt;

/// Whether the terminal has to be restored.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
static PANIC_HOOK: Once = Once::new();

/// The terminal while the view is open. Dropping it restores the terminal.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes over the terminal. It is also restored by a panic and by an interrupt, before their messages are printed.
    pub(super) fn take(interrupt: &Interrupt) -> io::Result<Self> {
        PANIC_HOOK.call_once(|| {
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                restore();
                hook(info);
            }));
        });
        interrupt.call_before_exit(restore);
        IS_TAKEN.store(true, Ordering::SeqCst);
        let taken = enable_raw_mode().and_then(|()| execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste));
        let terminal = taken.and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        terminal.map(|terminal| Self { terminal }).inspect_err(|_| restore())
    }

    /// Returns the number of columns and rows.
    pub(super) fn size(&self) -> io::Result<(u16, u16)> {
        self.terminal.size().map(|size| (size.width, size.height))
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Asks the terminal to put text on the clipboard. Terminals do not report whether they do so.
    pub(super) fn set_clipboard(&mut self, text: &str) -> io::Result<()> {
        let mut out = stdout();
        queue!(out, CopyToClipboard::to_clipboard_from(text))?;
        out.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal if it was taken.
fn restore() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        // Errors are ignored: each step is attempted, and nothing else can be done.
        drop(execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show));
        drop(disable_raw_mode());
    }
}
