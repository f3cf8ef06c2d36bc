//! What a manager runs on: the ports to the program around it and the machine below.
//!
//! Everywhere but on `wasm32` there is a default, the only code of this crate that knows tokio's timers, the system's clock and
//! `/proc`. There the program brings its own ([`crate::Memory::with_platform`]).

#[cfg(not(target_arch = "wasm32"))]
#[expect(clippy::disallowed_methods, reason = "behind the port")]
mod clock;
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "behind the port")]
mod processes;
#[cfg(not(target_arch = "wasm32"))]
#[expect(clippy::disallowed_methods, reason = "behind the port")]
mod tokio_runtime;

use std::fmt;
use std::sync::Arc;

use threadkeep_core::{Clock, Processes, Runtime};

#[cfg(not(target_arch = "wasm32"))]
pub use clock::SystemClock;
#[cfg(target_os = "linux")]
pub use processes::LinuxProcesses;
#[cfg(not(target_arch = "wasm32"))]
pub use tokio_runtime::TokioRuntime;

/// What a manager runs on. Default, where there are threads: the system's clock and randomness, the tokio runtime that the
/// caller is in, and on Linux the processes of `/proc`.
#[derive(Clone)]
pub struct Platform {
    /// The date and randomness.
    pub clock: Arc<dyn Clock>,
    /// Waiting and tasks.
    pub runtime: Arc<dyn Runtime>,
    /// The processes of the machine, where they can be known: without them a turn whose process was killed waits for the end of
    /// its lease ([`crate::turns::LEASE`]).
    pub processes: Option<Arc<dyn Processes>>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Default for Platform {
    fn default() -> Self {
        #[cfg(target_os = "linux")]
        let processes: Option<Arc<dyn Processes>> = Some(Arc::new(LinuxProcesses));
        #[cfg(not(target_os = "linux"))]
        let processes = None;
        Self { clock: Arc::new(SystemClock), runtime: Arc::new(TokioRuntime), processes }
    }
}

impl fmt::Debug for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Platform").finish_non_exhaustive()
    }
}
