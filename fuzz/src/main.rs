//! The binary that libFuzzer drives: `THREADKEEP_FUZZ_TARGET` names the target. `cargo xtask fuzz` builds and runs it.
#![no_main]

use std::sync::LazyLock;

use threadkeep_fuzz::Target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("THREADKEEP_FUZZ_TARGET").expect("THREADKEEP_FUZZ_TARGET names the target");
    threadkeep_fuzz::find(&name).expect("THREADKEEP_FUZZ_TARGET names a target that exists")
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| (TARGET.run)(data));
