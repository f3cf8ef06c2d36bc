//! The ports through which [`crate::Memory`] uses its environment: clock, runtime, processes.
//!
//! The default platform is the only code in this crate that uses tokio's timers, the system's clock and `/proc`. On `wasm32`,
//! there is no default: pass a platform to [`crate::Memory::with_platform`].

#[cfg(not(target_arch = "wasm32"))]
#[expect(clippy::disallowed_methods, reason = "this module implements the port")]
mod clock;
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "this module implements the port")]
mod processes;
#[cfg(not(target_arch = "wasm32"))]
#[expect(clippy::disallowed_methods, reason = "this module implements the port")]
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

/// The environment of a [`crate::Memory`]. Default, except on `wasm32`: the system's clock and randomness, the caller's tokio
/// runtime and, on Linux, the processes in `/proc`.
#[derive(Clone)]
pub struct Platform {
    /// The source of time and randomness.
    pub clock: Arc<dyn Clock>,
    /// Provides timers and tasks.
    pub runtime: Arc<dyn Runtime>,
    /// Finds out whether a process has ended; `None` if that is not possible on this platform. The lock of a turn whose process
    /// was killed is then released only at the end of its lease ([`crate::turns::LEASE`]).
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
