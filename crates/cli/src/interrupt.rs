//! Ctrl-C: a command that can stop between two steps does so, any other ends at once and leaves no half-made file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use threadkeep::agent::Stop;

use crate::failure::INTERRUPTED;
use crate::log_lines;
use crate::output::Output;

/// Hears of Ctrl-C. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    stops_by_itself: AtomicBool,
    is_asked_to_stop: AtomicBool,
    unfinished_files: Mutex<Vec<PathBuf>>,
    turn: Mutex<Option<Stop>>,
}

impl Interrupt {
    /// Begins to listen.
    pub(crate) fn listen(output: &Output) -> Self {
        let (this, output) = (Self::default(), output.clone());
        let state = Arc::clone(&this.state);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if let Some(turn) = state.turn().take() {
                    turn.stop();
                    continue;
                }
                let is_second = state.is_asked_to_stop.swap(true, Ordering::SeqCst);
                if is_second || !state.stops_by_itself.load(Ordering::SeqCst) {
                    state.end();
                }
                output.note("stopping after the next batch; Ctrl-C again ends at once");
            }
        });
        this
    }

    /// From here on the command asks [`Interrupt::is_asked_to_stop`] by itself; a second Ctrl-C still ends it at once.
    pub(crate) fn stop_by_itself(&self) {
        self.state.stops_by_itself.store(true, Ordering::SeqCst);
    }

    /// Ends at once.
    pub(crate) fn end(&self) -> ! {
        self.state.end()
    }

    /// Whether the command is to stop after the step that it is at.
    pub(crate) fn is_asked_to_stop(&self) -> bool {
        self.state.is_asked_to_stop.load(Ordering::SeqCst)
    }

    #[cfg(test)]
    pub(crate) fn ask_to_stop(&self) {
        self.state.is_asked_to_stop.store(true, Ordering::SeqCst);
    }

    /// Has the next Ctrl-C stop a turn and nothing else; `None` when the turn is over.
    pub(crate) fn stops(&self, turn: Option<Stop>) {
        *self.state.turn() = turn;
    }

    /// Has a file or folder removed if the program is interrupted.
    pub(crate) fn remove_if_interrupted(&self, file: &Path) {
        self.state.files().push(file.to_owned());
    }
}

impl State {
    fn turn(&self) -> std::sync::MutexGuard<'_, Option<Stop>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> std::sync::MutexGuard<'_, Vec<PathBuf>> {
        self.unfinished_files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) -> ! {
        for file in self.files().drain(..) {
            // Finished and renamed already, or never made: nothing is left to remove.
            drop(if file.is_dir() { std::fs::remove_dir_all(file) } else { std::fs::remove_file(file) });
        }
        log_lines::close();
        std::process::exit(i32::from(INTERRUPTED));
    }
}
