//! Runs every fuzz target on its corpus of seeds and past failures.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::thread;

use threadkeep_fuzz::TARGETS;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The stack size of libFuzzer's main thread.
const STACK_BYTES: usize = 8 * 1024 * 1024;

#[test]
fn every_target_accepts_its_corpus() {
    for target in TARGETS {
        let mut files: Vec<PathBuf> =
            fs::read_dir(corpus().join(target.name)).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{} has no seed", target.name);
        let run = target.run;
        let builder = thread::Builder::new().stack_size(STACK_BYTES).name(target.name.to_owned());
        let handle = builder.spawn(move || {
            for file in files {
                // Printed if the test fails or the process crashes.
                println!("{}", file.display());
                run(&fs::read(&file).unwrap());
            }
        });
        assert!(handle.unwrap().join().is_ok(), "{} failed on the last file above", target.name);
    }
}

#[test]
fn every_folder_of_the_corpus_has_a_target() {
    let folders = fs::read_dir(corpus()).unwrap().map(|folder| folder.unwrap().file_name().into_string().unwrap());
    let names = TARGETS.iter().map(|target| target.name.to_owned());
    assert_eq!(folders.collect::<BTreeSet<_>>(), names.collect::<BTreeSet<_>>());
}

/// Every target is documented in README.md.
#[test]
fn every_target_is_in_the_readme() {
    let readme = fs::read_to_string(corpus().join("../README.md")).unwrap();
    for target in TARGETS {
        assert!(readme.contains(&format!("`{}`", target.name)), "{} is missing", target.name);
    }
}
