//! Handles Ctrl-C. Commands that can stop between steps do so. All others exit immediately and leave no partial file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use threadkeep::agent::Stop;

use crate::failure::INTERRUPTED;
use crate::log_lines;
use crate::output::Output;

/// Reacts to Ctrl-C. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    is_graceful: AtomicBool,
    is_stop_requested: AtomicBool,
    unfinished_files: Mutex<Vec<PathBuf>>,
    turn: Mutex<Option<Stop>>,
    before_exit: Mutex<Option<fn()>>,
}

impl Interrupt {
    /// Starts to listen for Ctrl-C.
    pub(crate) fn listen(output: &Output) -> Self {
        let (this, output) = (Self::default(), output.clone());
        let state = Arc::clone(&this.state);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if let Some(turn) = state.turn().take() {
                    turn.stop();
                    continue;
                }
                let is_second = state.is_stop_requested.swap(true, Ordering::SeqCst);
                if is_second || !state.is_graceful.load(Ordering::SeqCst) {
                    state.exit();
                }
                output.note("stopping after the current batch; press Ctrl-C again to exit immediately");
            }
        });
        this
    }

    /// Disables the immediate exit: the command must check [`Interrupt::is_stop_requested`]. A second Ctrl-C still exits
    /// immediately.
    pub(crate) fn enable_graceful_stop(&self) {
        self.state.is_graceful.store(true, Ordering::SeqCst);
    }

    /// Exits immediately.
    pub(crate) fn exit(&self) -> ! {
        self.state.exit()
    }

    /// Whether the command should stop after its current step.
    pub(crate) fn is_stop_requested(&self) -> bool {
        self.state.is_stop_requested.load(Ordering::SeqCst)
    }

    #[cfg(test)]
    pub(crate) fn request_stop(&self) {
        self.state.is_stop_requested.store(true, Ordering::SeqCst);
    }

    /// Makes the next Ctrl-C stop only this turn. `None` after the turn has ended.
    pub(crate) fn set_turn(&self, turn: Option<Stop>) {
        *self.state.turn() = turn;
    }

    /// Calls a function before an interrupt exits the program.
    pub(crate) fn call_before_exit(&self, call: fn()) {
        *self.state.before_exit.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
    }

    /// Registers a file or folder that is removed if the program is interrupted.
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

    fn exit(&self) -> ! {
        for file in self.files().drain(..) {
            // Errors are ignored: the file was already renamed, or never created.
            drop(if file.is_dir() { std::fs::remove_dir_all(file) } else { std::fs::remove_file(file) });
        }
        if let Some(call) = *self.before_exit.lock().unwrap_or_else(PoisonError::into_inner) {
            call();
        }
        log_lines::close();
        std::process::exit(i32::from(INTERRUPTED));
    }
}
