//! Checks that the generated code is up to date with `proto/realtime.proto`.
//!
//! Run with `THREADKEEP_REGENERATE=1` to regenerate it.

use std::path::Path;

const GENERATED: &str = "src/realtime/wire.rs";

#[test]
fn the_wire_types_are_up_to_date_with_the_proto_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = tempfile::tempdir().unwrap();
    let messages = protox::compile([root.join("proto/realtime.proto")], [root.join("proto")]).unwrap();
    prost_build::Config::new().out_dir(out.path()).compile_fds(messages).unwrap();
    let generated = std::fs::read_to_string(out.path().join("transit_realtime.rs")).unwrap();
    let generated = generated.replace("pub struct", "pub(crate) struct");
    if std::env::var_os("THREADKEEP_REGENERATE").is_some() {
        std::fs::write(root.join(GENERATED), &generated).unwrap();
    }
    let committed = std::fs::read_to_string(root.join(GENERATED)).unwrap();
    assert!(committed == generated, "{GENERATED} differs; regenerate it with THREADKEEP_REGENERATE=1");
}
