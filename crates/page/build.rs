//! Lists the files in web/dist, so that the library can contain them. Without that folder, the list is empty.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let web = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../web");
    let dist = web.join("dist");
    // Cargo would rerun this script on every build if the watched path did not exist. A new folder changes its parent folder.
    let watched = if dist.is_dir() { &dist } else { &web };
    println!("cargo:rerun-if-changed={}", watched.display());
    let mut files = Vec::new();
    if dist.is_dir() {
        collect(&dist.canonicalize()?, "", &mut files)?;
    }
    files.sort();
    let mut code = String::from("/// The files, sorted by name.\npub const FILES: &[(&str, &[u8])] = &[\n");
    for (name, path) in files {
        writeln!(code, "    ({name:?}, include_bytes!({path:?})),").expect("writing to a string cannot fail");
    }
    code.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("files.rs"), code)
}

/// Adds the files of a folder and its subfolders, with their names relative to the page.
fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.push((name, entry.path()));
        }
    }
    Ok(())
}
