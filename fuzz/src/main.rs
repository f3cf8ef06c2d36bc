//! The libFuzzer binary, built and run by `cargo xtask fuzz`. `THREADKEEP_FUZZ_TARGET` selects the target.
#![no_main]

use std::sync::LazyLock;

use threadkeep_fuzz::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("THREADKEEP_FUZZ_TARGET").expect("THREADKEEP_FUZZ_TARGET must be set");
    threadkeep_fuzz::find(&name).expect("THREADKEEP_FUZZ_TARGET must be the name of a target")
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| (TARGET.run)(data));
